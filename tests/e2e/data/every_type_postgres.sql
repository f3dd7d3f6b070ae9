-- tables
CREATE EXTENSION hstore; CREATE EXTENSION citext; CREATE EXTENSION ltree; CREATE EXTENSION isn;
CREATE TYPE mood AS ENUM ('sad', 'it''s ok', 'a,b');
CREATE DOMAIN positive AS integer CHECK (VALUE > 0);
CREATE DOMAIN price AS numeric(8, 3);
CREATE TABLE numbers (pk serial PRIMARY KEY, i2 smallint, i4 integer NOT NULL DEFAULT 7, i8 bigint, r real, d double precision, n numeric,
  n52 numeric(5, 2), n50 numeric(5, 0), n382 numeric(38, 2), n503 numeric(50, 3), m money, b boolean, o oid, pos positive, pr price);
CREATE TABLE texts (pk serial PRIMARY KEY, c char(5), v varchar(20), t text, bpc bpchar, nm name, ch "char", ci citext, e mood, j json, jb jsonb,
  x xml, u uuid, h hstore, l ltree, ib isbn, bt bytea, bit1 bit(1), bit8 bit(8), b33 bit(33), vb varbit(12), vbx varbit, ts tsvector, tq tsquery);
CREATE TABLE times (pk serial PRIMARY KEY, d date, t time, t0 time(0), t3 time(3), tz timetz, ts timestamp, ts0 timestamp(0), ts3 timestamp(3),
  tstz timestamptz, tstz0 timestamptz(0), iv interval, iv_f interval day to second(3), ym interval year to month);
CREATE TABLE nets (pk serial PRIMARY KEY, ip inet, ci cidr, mac macaddr, mac8 macaddr8, p point, i4r int4range, i8r int8range, nr numrange,
  tsr tsrange, tstzr tstzrange, dr daterange, pl pg_lsn);
CREATE TABLE arrays (pk serial PRIMARY KEY, i2 smallint[], i4 integer[], i8 bigint[], r real[], d double precision[], n numeric(10, 2)[],
  nx numeric[], b boolean[], c char(3)[], v varchar(9)[], t text[], dt date[], ti time[], ts timestamp[], ts3 timestamp(3)[], tstz timestamptz[],
  u uuid[], j json[], jb jsonb[], e mood[], ip inet[], bt bytea[], i4r int4range[], h hstore[], ca citext[], o oid[]);
-- rows, for the snapshot and again for the stream
INSERT INTO numbers (i2, i4, i8, r, d, n, n52, n50, n382, n503, m, b, o, pos, pr) VALUES (-32768, 2147483647, -9223372036854775808, 1.5, 2.25, 123.4560, -999.99, 99999, 999999999999999999999999999999999999.99, 99999999999999999999999999999999999999999999999.999, '-$1,234.56', false, 4294967295, 9, -1.5), (NULL, 0, NULL, 'NaN', '-Infinity', 0.000000001, 0, 0, -0.01, -0.001, 0, true, 0, 1, 0), (1, 1, 1, '3.4028235e38', '-1.7976931348623157e308', -12345678901234567890, 0.1, -1, 0, 0, '92233720368547758.07', NULL, NULL, NULL, NULL);
INSERT INTO texts (c, v, t, bpc, nm, ch, ci, e, j, jb, x, u, h, l, ib, bt, bit1, bit8, b33, vb, vbx, ts, tq) VALUES ('ab', 'žluťoučký', '日本語 😀 text', 'pad', 'nm', 'q', 'CaSe', 'it''s ok', '{"b": 1, "a": [1, 2.50]}', '{"b": 1, "a": [1, 2.50]}', '<a b="c">d</a>', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'k=>v, n=>NULL', 'top.a', '978-0-393-04002-9', '\xdeadbeef00', '1', '10101010', B'100000000000000000000000000000001', '101', B'000000110000001000000001', 'a fat cat', 'fat & cat'), ('', '', E'line\r\nfeed\ttab "q" \\', '', '', '', '', 'a,b', 'null', '[]', '<a/>', '00000000-0000-0000-0000-000000000000', '', '', NULL, '', '0', '00000000', B'000000000000000000000000000000000', '', '', '', NULL);
INSERT INTO texts (pk) VALUES (DEFAULT);
INSERT INTO times (d, t, t0, t3, tz, ts, ts0, ts3, tstz, tstz0, iv, iv_f, ym) VALUES ('2016-11-04', '13:51:30.123456', '13:51:30', '13:51:30.123', '13:51:30.123789+02', '2016-11-04 13:51:30.123456', '2016-11-04 13:51:31', '2016-11-04 13:51:30.123', '2016-11-04 13:51:30.123456+02', '2016-11-04 13:51:30+02', '1 year 2 months 3 days 4 hours 5 minutes 6.78 seconds', '3 days 04:05:06.789', '3 years 5 mons'), ('0001-01-01', '00:00', '24:00', '23:59:59.999', '00:00-15:59', '0001-01-01 00:00:00', '1969-12-31 23:59:59', '1969-12-31 23:59:59.999', '1969-12-31 23:59:59.999999+00', '0001-01-01 00:00:00+00', '-1 day -00:00:00.000001', '-04:05:06.789', '-1 year'), ('9999-12-31', '24:00', '12:00', '00:00:00.001', '23:59:59.999999+15:59', '9999-12-31 23:59:59.999999', '9999-12-31 23:59:59', '9999-12-31 23:59:59.999', '9999-12-31 23:59:59.999999+00', '9999-12-31 23:59:59+00', '100:00:00', '0', '0');
INSERT INTO times (d, ts, tstz) VALUES ('infinity', 'infinity', 'infinity'), ('-infinity', '-infinity', '-infinity'), (NULL, NULL, NULL);
INSERT INTO nets VALUES (DEFAULT, '192.168.0.1/24', '192.168.100.128/25', '08:00:2b:01:02:03', '08:00:2b:01:02:03:04:05', '(1,1.5)', '[1,10)', '[5,)', '(1.5,2.5]', '[2016-01-01 10:00,2016-01-02 11:00)', '[2016-01-01 10:00+00,2016-01-02 11:00+00)', '[2016-01-01,2016-02-01)', '0/16B3748');
INSERT INTO nets (ip, i4r) VALUES ('2001:db8::1', 'empty'), (NULL, NULL);
INSERT INTO arrays VALUES (DEFAULT, '{1,2,NULL}', '{1,-2}', '{9223372036854775807}', '{1.5,NULL}', '{2.25}', '{1.10,2.20}', '{1.50,NULL,100}', '{t,f,NULL}', '{ab,c}', '{"a,b","c\"d"}', '{NULL,"NULL",x}', '{2016-01-01,NULL}', '{10:00:00.5,24:00:00}', '{"2016-01-01 10:00:00.123456"}', '{"2020-01-01 00:00:00.5"}', '{"2016-01-01 10:00:00+02"}', '{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}', '{"{\"a\": 1}"}', '{"{\"a\": 1}"}', '{sad,"it''s ok"}', '{10.0.0.1}', '{"\\xdead"}', '{"[1,3)"}', '{"a=>1",NULL}', '{Ab,NULL}', '{1,4294967295}');
INSERT INTO arrays (i4, t, n) VALUES ('{}', '{}', '{}'), (NULL, NULL, NULL);
-- changes
UPDATE numbers SET n52 = 1.25, d = 'Infinity', m = '-92233720368547758.08' WHERE pk = 1;
UPDATE texts SET jb = '{"x": null}', bt = '\x00' WHERE pk = 1;
DELETE FROM times WHERE pk = 1;
UPDATE arrays SET i4 = '{3,NULL}', ts = NULL WHERE pk = 1;
