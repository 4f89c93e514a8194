-- A load like TPC-C: its tables, rows and transactions, in pgbench.  It is not
-- TPC-C: customers are found by number only, and nothing waits for a keyboard.

CREATE TABLE warehouse (w int PRIMARY KEY, ytd numeric, filler char(80));
CREATE TABLE district (w int, d int, next_o int, ytd numeric, filler char(80),
                       PRIMARY KEY (w, d));
CREATE TABLE customer (w int, d int, c int, balance numeric, filler char(500),
                       PRIMARY KEY (w, d, c));
CREATE TABLE item (i int PRIMARY KEY, price int, filler char(50));
CREATE TABLE stock (w int, i int, quantity int, filler char(270),
                    PRIMARY KEY (w, i));
CREATE TABLE orders (w int, d int, o int, c int, carrier int,
                     PRIMARY KEY (w, d, o));
CREATE TABLE new_order (w int, d int, o int, PRIMARY KEY (w, d, o));
CREATE TABLE order_line (w int, d int, o int, n int, i int, quantity int,
                         amount int, delivered timestamp, filler char(24),
                         PRIMARY KEY (w, d, o, n));
CREATE TABLE history (w int, d int, c int, amount int, at timestamp);

INSERT INTO warehouse SELECT w, 0, '' FROM generate_series(1, {warehouses}) w;
INSERT INTO district SELECT w, d, 3001, 0, ''
  FROM generate_series(1, {warehouses}) w, generate_series(1, 10) d;
INSERT INTO customer SELECT w, d, c, 0, ''
  FROM generate_series(1, {warehouses}) w, generate_series(1, 10) d,
       generate_series(1, 3000) c;
INSERT INTO item SELECT i, random(1, 100), '' FROM generate_series(1, 100000) i;
INSERT INTO stock SELECT w, i, random(10, 100), ''
  FROM generate_series(1, {warehouses}) w, generate_series(1, 100000) i;
INSERT INTO orders SELECT w, d, o, 1 + (o * 1571) % 3000, 1
  FROM generate_series(1, {warehouses}) w, generate_series(1, 10) d,
       generate_series(1, 3000) o;
INSERT INTO new_order SELECT w, d, o
  FROM generate_series(1, {warehouses}) w, generate_series(1, 10) d,
       generate_series(2101, 3000) o;
INSERT INTO order_line SELECT w, d, o, n, random(1, 100000), 5, 1, now(), ''
  FROM orders, generate_series(1, 10) n;
CREATE INDEX orders_customer ON orders (w, d, c, o);
VACUUM ANALYZE;

-- TPC-C's NURand(): some of the numbers 1 to most are drawn more often
CREATE FUNCTION nurand(a int, most int) RETURNS int LANGUAGE sql
RETURN 1 + ((random(0, a) | random(1, most)) + 1234) % most;

CREATE FUNCTION new_order(warehouse int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	my_d int := random(1, 10);
	my_c int := nurand(1023, 3000);
	my_o int;
	my_i int;
	cost int;
BEGIN
	PERFORM balance FROM customer WHERE w = warehouse AND d = my_d AND c = my_c;
	UPDATE district SET next_o = next_o + 1 WHERE w = warehouse AND d = my_d
	  RETURNING next_o - 1 INTO my_o;
	INSERT INTO orders VALUES (warehouse, my_d, my_o, my_c, NULL);
	INSERT INTO new_order VALUES (warehouse, my_d, my_o);
	FOR line IN 1 .. random(5, 15) LOOP
		my_i := nurand(8191, 100000);
		SELECT price INTO cost FROM item WHERE i = my_i;
		UPDATE stock SET quantity = CASE WHEN quantity > 15
		                            THEN quantity - 5 ELSE quantity + 86 END
		  WHERE w = warehouse AND i = my_i;
		INSERT INTO order_line
		  VALUES (warehouse, my_d, my_o, line, my_i, 5, 5 * cost, NULL, '');
	END LOOP;
-- two that update the same rows of the stock in other orders
EXCEPTION WHEN deadlock_detected THEN NULL;
END $$;

CREATE FUNCTION payment(warehouse int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	my_d int := random(1, 10);
	my_c int := nurand(1023, 3000);
	paid int := random(1, 5000);
BEGIN
	UPDATE warehouse SET ytd = ytd + paid WHERE w = payment.warehouse;
	UPDATE district SET ytd = ytd + paid WHERE w = payment.warehouse AND d = my_d;
	UPDATE customer SET balance = balance - paid
	  WHERE w = payment.warehouse AND d = my_d AND c = my_c;
	INSERT INTO history VALUES (payment.warehouse, my_d, my_c, paid, now());
END $$;

CREATE FUNCTION order_status(warehouse int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	my_d int := random(1, 10);
	my_c int := nurand(1023, 3000);
	my_o int;
BEGIN
	PERFORM balance FROM customer WHERE w = warehouse AND d = my_d AND c = my_c;
	SELECT o INTO my_o FROM orders
	  WHERE w = warehouse AND d = my_d AND c = my_c ORDER BY o DESC LIMIT 1;
	PERFORM count(*) FROM order_line
	  WHERE w = warehouse AND d = my_d AND o = my_o;
END $$;

CREATE FUNCTION delivery(warehouse int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	my_o int;
	my_c int;
	total int;
BEGIN
	FOR my_d IN 1 .. 10 LOOP
		DELETE FROM new_order WHERE w = warehouse AND d = my_d AND o =
		  (SELECT o FROM new_order WHERE w = warehouse AND d = my_d
		   ORDER BY o LIMIT 1) RETURNING o INTO my_o;
		CONTINUE WHEN my_o IS NULL;
		UPDATE orders SET carrier = 5 WHERE w = warehouse AND d = my_d AND o = my_o
		  RETURNING c INTO my_c;
		UPDATE order_line SET delivered = now()
		  WHERE w = warehouse AND d = my_d AND o = my_o;
		SELECT sum(amount) INTO total FROM order_line
		  WHERE w = warehouse AND d = my_d AND o = my_o;
		UPDATE customer SET balance = balance + total
		  WHERE w = warehouse AND d = my_d AND c = my_c;
	END LOOP;
EXCEPTION WHEN deadlock_detected THEN NULL;
END $$;

CREATE FUNCTION stock_level(warehouse int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	my_d int := random(1, 10);
	newest int;
BEGIN
	SELECT next_o INTO newest FROM district WHERE w = warehouse AND d = my_d;
	PERFORM count(DISTINCT stock.i) FROM order_line
	  JOIN stock ON stock.w = warehouse AND stock.i = order_line.i
	  WHERE order_line.w = warehouse AND d = my_d AND o >= newest - 20
	    AND stock.quantity < 20;
END $$;
