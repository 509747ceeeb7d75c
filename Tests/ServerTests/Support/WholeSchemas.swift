/// Schemas as programs have them, of three kinds; `~` stands for the schema's name.
enum WholeSchemas {
    /// A shop: short texts as keys, money, pictures, join tables, a table that refers to itself. 14 tables.
    static let trade = """
        CREATE TABLE ~.categories (category_id smallint PRIMARY KEY, name varchar(15) NOT NULL, picture bytea);
        CREATE TABLE ~.customers (customer_id bpchar PRIMARY KEY, company varchar(40) NOT NULL, fax varchar(24));
        CREATE TABLE ~.customer_types (type_id char(4) PRIMARY KEY, about text);
        CREATE TABLE ~.customer_of_type (customer_id bpchar REFERENCES ~.customers,
            type_id char(4) REFERENCES ~.customer_types, PRIMARY KEY (customer_id, type_id));
        CREATE TABLE ~.employees (employee_id smallint PRIMARY KEY, born date, hired date, photo bytea, notes text,
            reports_to smallint REFERENCES ~.employees);
        CREATE TABLE ~.suppliers (supplier_id smallint PRIMARY KEY, company varchar(40), home text);
        CREATE TABLE ~.products (product_id smallint PRIMARY KEY, name varchar(40), unit_price real, price money,
            supplier_id smallint REFERENCES ~.suppliers, category_id smallint REFERENCES ~.categories,
            discontinued int NOT NULL);
        CREATE TABLE ~.regions (region_id smallint PRIMARY KEY, about varchar(60));
        CREATE TABLE ~.territories (territory_id varchar(20) PRIMARY KEY, region_id smallint REFERENCES ~.regions);
        CREATE TABLE ~.employee_territories (employee_id smallint REFERENCES ~.employees,
            territory_id varchar(20) REFERENCES ~.territories, PRIMARY KEY (employee_id, territory_id));
        CREATE TABLE ~.shippers (shipper_id smallint PRIMARY KEY, company varchar(40), phone varchar(24));
        CREATE TABLE ~.orders (order_id smallint PRIMARY KEY, customer_id bpchar REFERENCES ~.customers,
            ordered date, freight numeric(10, 4), via smallint REFERENCES ~.shippers);
        CREATE TABLE ~."order details" (order_id smallint REFERENCES ~.orders, product_id smallint
            REFERENCES ~.products, unit_price numeric NOT NULL, quantity smallint, discount real,
            PRIMARY KEY (order_id, product_id));
        CREATE TABLE ~.states (state_id smallint PRIMARY KEY, abbreviation char(2), added timestamp DEFAULT now());
        INSERT INTO ~.categories VALUES (1, 'Drinks', '\\xdeadbeef');
        INSERT INTO ~.customers VALUES ('ALFKI', 'A', NULL), ('AB   ', 'B', '1');
        INSERT INTO ~.customer_types VALUES ('vip', 'x'); INSERT INTO ~.customer_of_type VALUES ('AB', 'vip');
        INSERT INTO ~.employees VALUES (2, '1952-02-19', '1992-08-14', '\\x00', 'n', NULL),
            (1, NULL, NULL, '', NULL, 2);
        INSERT INTO ~.suppliers VALUES (1, 'S', '#'); INSERT INTO ~.products VALUES (1, 'Chai', 18.4, 18, 1, 1, 0);
        INSERT INTO ~.regions VALUES (1, 'East'); INSERT INTO ~.territories VALUES ('01581', 1);
        INSERT INTO ~.employee_territories VALUES (1, '01581'); INSERT INTO ~.shippers VALUES (1, 'S', NULL);
        INSERT INTO ~.orders VALUES (10248, 'AB', '1996-07-04', 32.38, 1);
        INSERT INTO ~."order details" VALUES (10248, 1, 14.00, 12, 0.15); INSERT INTO ~.states VALUES (1, 'AL')
        """

    /// Records: names in two cases, exact prices, a list of songs. 11 tables.
    static let music = """
        CREATE TABLE ~."Artist" ("ArtistId" int PRIMARY KEY, "Name" varchar(120));
        CREATE TABLE ~."Album" ("AlbumId" int PRIMARY KEY, "Title" varchar(160) NOT NULL,
            "ArtistId" int NOT NULL REFERENCES ~."Artist");
        CREATE TABLE ~."Genre" ("GenreId" int PRIMARY KEY, "Name" varchar(120));
        CREATE TABLE ~."MediaType" ("MediaTypeId" int PRIMARY KEY, "Name" varchar(120));
        CREATE TABLE ~."Track" ("TrackId" int PRIMARY KEY, "Name" varchar(200), "AlbumId" int REFERENCES ~."Album",
            "Milliseconds" int, "UnitPrice" numeric(10, 2) NOT NULL);
        CREATE TABLE ~."Playlist" ("PlaylistId" int PRIMARY KEY, "Name" varchar(120));
        CREATE TABLE ~."PlaylistTrack" ("PlaylistId" int REFERENCES ~."Playlist", "TrackId" int REFERENCES ~."Track",
            PRIMARY KEY ("PlaylistId", "TrackId"));
        CREATE TABLE ~."Employee" ("EmployeeId" int PRIMARY KEY, "HireDate" timestamp, "Email" varchar(60));
        CREATE TABLE ~."Customer" ("CustomerId" int PRIMARY KEY, "Company" varchar(80), "Email" varchar(60) NOT NULL);
        CREATE TABLE ~."Invoice" ("InvoiceId" int PRIMARY KEY, "CustomerId" int REFERENCES ~."Customer",
            "InvoiceDate" timestamp NOT NULL, "Total" numeric(10, 2) NOT NULL);
        CREATE TABLE ~."InvoiceLine" ("InvoiceLineId" int PRIMARY KEY, "InvoiceId" int REFERENCES ~."Invoice",
            "TrackId" int REFERENCES ~."Track", "Quantity" int NOT NULL);
        INSERT INTO ~."Artist" VALUES (1, 'A'); INSERT INTO ~."Album" VALUES (1, 'T', 1);
        INSERT INTO ~."Genre" VALUES (1, 'Rock'); INSERT INTO ~."MediaType" VALUES (1, 'AAC');
        INSERT INTO ~."Track" SELECT g, 'T' || g, 1, g, 0.99 FROM generate_series(1, 9) g;
        INSERT INTO ~."Playlist" VALUES (1, 'P'), (2, 'Q');
        INSERT INTO ~."PlaylistTrack" SELECT 1 + g % 2, g FROM generate_series(1, 9) g;
        INSERT INTO ~."Employee" VALUES (1, '2002-08-14', 'e'); INSERT INTO ~."Customer" VALUES (1, NULL, 'c');
        INSERT INTO ~."Invoice" VALUES (1, 1, '2009-01-01', 1.98); INSERT INTO ~."InvoiceLine" VALUES (1, 1, 1, 1)
        """

    /// Films to let: an enumeration, domains, arrays, a text search, ranges, triggers, a partitioned table. 15 tables.
    static let rental = """
        CREATE TYPE ~.rating AS ENUM ('G', 'PG', 'NC-17');
        CREATE DOMAIN ~.year AS integer CHECK (value BETWEEN 1901 AND 2155);
        CREATE DOMAIN ~.bigkey AS bigint; CREATE DOMAIN ~.mail AS text CHECK (value LIKE '%@%');
        CREATE FUNCTION ~.touch() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN NEW.last_update = '2026-01-01'; RETURN NEW; END $$;
        CREATE TABLE ~.actor (actor_id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name varchar(45),
            last_update timestamptz NOT NULL DEFAULT now());
        CREATE TABLE ~.category (category_id serial PRIMARY KEY, name varchar(25));
        CREATE TABLE ~.language (language_id serial PRIMARY KEY, name char(20));
        CREATE TABLE ~.film (film_id serial PRIMARY KEY, title varchar(255), release_year ~.year,
            language_id int REFERENCES ~.language, rate numeric(4, 2) DEFAULT 4.99, rating ~.rating DEFAULT 'G',
            features text[], fulltext tsvector, last_update timestamptz DEFAULT now());
        CREATE TRIGGER touched BEFORE INSERT OR UPDATE ON ~.film FOR EACH ROW EXECUTE FUNCTION ~.touch();
        CREATE TRIGGER searched BEFORE INSERT OR UPDATE ON ~.film FOR EACH ROW
            EXECUTE FUNCTION tsvector_update_trigger('fulltext', 'pg_catalog.english', 'title');
        CREATE TABLE ~.film_actor (actor_id int REFERENCES ~.actor, film_id int REFERENCES ~.film,
            last_update timestamptz DEFAULT now(), PRIMARY KEY (actor_id, film_id));
        CREATE TABLE ~.film_category (film_id int REFERENCES ~.film, category_id int REFERENCES ~.category,
            PRIMARY KEY (film_id, category_id));
        CREATE TABLE ~.country (country_id serial PRIMARY KEY, country text);
        CREATE TABLE ~.city (city_id serial PRIMARY KEY, city text, country_id int REFERENCES ~.country, at point);
        CREATE TABLE ~.address (address_id serial PRIMARY KEY, city_id int REFERENCES ~.city, from_net inet,
            hours time);
        CREATE TABLE ~.store (store_id serial PRIMARY KEY, address_id int REFERENCES ~.address, open int4range);
        CREATE TABLE ~.staff (staff_id serial PRIMARY KEY, email ~.mail, active boolean DEFAULT true, picture bytea);
        CREATE TABLE ~.customer (customer_id ~.bigkey PRIMARY KEY, email ~.mail, made date DEFAULT '2026-01-01',
            active int);
        CREATE TABLE ~.inventory (inventory_id uuid PRIMARY KEY DEFAULT gen_random_uuid(), film_id int
            REFERENCES ~.film);
        CREATE TABLE ~.rental (rental_id serial PRIMARY KEY, inventory_id uuid REFERENCES ~.inventory,
            lent tstzrange, held interval, UNIQUE (lent, inventory_id));
        CREATE TABLE ~.payment (payment_id serial, customer_id bigint, amount numeric(5, 2), paid timestamptz,
            PRIMARY KEY (paid, payment_id)) PARTITION BY RANGE (paid);
        CREATE TABLE ~.payment_1 PARTITION OF ~.payment FOR VALUES FROM ('2026-01-01Z') TO ('2026-02-01Z');
        CREATE TABLE ~.payment_2 PARTITION OF ~.payment FOR VALUES FROM ('2026-02-01Z') TO ('2026-03-01Z');
        INSERT INTO ~.actor (name) VALUES ('A'), ('B'); INSERT INTO ~.category (name) VALUES ('C');
        INSERT INTO ~.language (name) VALUES ('English');
        INSERT INTO ~.film (title, release_year, language_id, features, rating)
            VALUES ('An Academy', 2006, 1, '{"Deleted Scenes",Trailers}', 'NC-17');
        INSERT INTO ~.film_actor VALUES (1, 1), (2, 1); INSERT INTO ~.film_category VALUES (1, 1);
        INSERT INTO ~.country (country) VALUES ('X');
        INSERT INTO ~.city (city, country_id, at) VALUES ('Y', 1, '(1,2)');
        INSERT INTO ~.address (city_id, from_net, hours) VALUES (1, '10.0.0.1', '10:00');
        INSERT INTO ~.store (address_id, open) VALUES (1, '[8,20)');
        INSERT INTO ~.staff (email, picture) VALUES ('a@b', '\\x89504e47');
        INSERT INTO ~.customer VALUES (9007199254740993, 'c@d'); INSERT INTO ~.inventory (film_id) VALUES (1);
        INSERT INTO ~.rental (inventory_id, lent, held)
            SELECT inventory_id, '[2026-01-01Z,2026-01-03Z)', '2 days' FROM ~.inventory;
        INSERT INTO ~.payment (customer_id, amount, paid)
            VALUES (1, 2.99, '2026-01-15 12:00Z'), (1, 3, '2026-02-15 12:00Z')
        """
}
