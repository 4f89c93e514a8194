"""Simpler predictions, to compare the simulation with.

- constant: the median of the column, which the simulation has not seen.
- roofline: tps = min(slope x clients, ceiling of the column); the slope from
  one fitted cell, the ceilings from the others."""

from statistics import median


def constant(table):
    """{cell: published} -> {cell: predicted}"""
    columns = {}
    for (_, column), value in table.items():
        columns.setdefault(column, []).append(value)
    return {(clients, column): median(columns[column])
            for clients, column in table}


def roofline(table, fitted):
    first, *others = fitted
    slope = table[first] / first[0]
    ceiling = {column: table[clients, column] for clients, column in others}
    return {(clients, column): min(slope * clients, ceiling[column])
            for clients, column in table}


def errors(table, predicted, cells):
    """Relative, as absolute values."""
    return [abs(predicted[cell] / table[cell] - 1) for cell in cells]


def ratios(table, base="master"):
    """Of the columns to the base, at the same number of clients."""
    return {(clients, column): value / table[clients, base]
            for (clients, column), value in table.items() if column != base}


def line_of(table, column):
    return sorted((clients, value) for (clients, name), value in table.items()
                  if name == column)


def knee(table, column, share=0.9):
    """The fewest clients with this share of the column's largest."""
    line = line_of(table, column)
    most = max(value for _, value in line)
    return next(clients for clients, value in line if value >= share * most)


def knee_of_plateau(table, column, share=0.9):
    """Another one: of the median of the upper half of the client counts.
    (Where a plateau rises a little, the one above says where it ends.)"""
    line = line_of(table, column)
    plateau = median(value for _, value in line[len(line) // 2:])
    return next(clients for clients, value in line if value >= share * plateau)
