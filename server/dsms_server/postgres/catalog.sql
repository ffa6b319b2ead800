-- What PostgreSQL's clients ask for of its catalog, over four tables that the server fills:
--   _objects    oid, name, kind (stream, table, query), comment, text, columns (how many)
--   _columns    oid of the object, num, name, type (oid), modifier, required, shown (the type's name)
--   _keys       oid of the index, relation (oid), name, columns (their numbers)
--   _functions  oid, name, kind (f, a), result (oid), arguments, names, text
--   _types      oid, name, size, item (oid), list (oid), category
-- Columns that nothing fills are there, since clients name them.

CREATE MACRO _no_list() AS NULL::VARCHAR[];
CREATE MACRO _typename(t) AS CASE t WHEN 16 THEN 'boolean' WHEN 20 THEN 'bigint' WHEN 21 THEN 'smallint' WHEN 23 THEN 'integer'
    WHEN 701 THEN 'double precision' WHEN 1184 THEN 'timestamp with time zone' WHEN 1114 THEN 'timestamp without time zone'
    WHEN 1043 THEN 'character varying' WHEN 1083 THEN 'time without time zone'
    ELSE (SELECT name FROM _types y WHERE y.oid = t) END;
CREATE MACRO format_type(t, m) AS CASE WHEN t = 1700 AND m > 0 THEN 'numeric(' || ((m - 4) >> 16)::VARCHAR || ',' || ((m - 4) & 65535)::VARCHAR || ')'
    WHEN coalesce((SELECT item FROM _types y WHERE y.oid = t), 0) <> 0 THEN _typename((SELECT item FROM _types y WHERE y.oid = t)) || '[]'
    ELSE _typename(t) END;
CREATE MACRO _plain(x) AS replace(replace(x::VARCHAR, 'public.', ''), '"', '');
CREATE MACRO _regclass(x) AS coalesce(try_cast(x AS BIGINT), (SELECT oid FROM pg_class k WHERE k.relname = _plain(x)
    OR 'pg_catalog.' || k.relname = _plain(x) LIMIT 1), CASE x::VARCHAR WHEN 'pg_class' THEN 1259 WHEN 'pg_catalog.pg_class' THEN 1259 WHEN 'pg_namespace' THEN 2615 WHEN 'pg_catalog.pg_namespace' THEN 2615
    WHEN 'pg_proc' THEN 1255 WHEN 'pg_catalog.pg_proc' THEN 1255 WHEN 'pg_database' THEN 1262 WHEN 'pg_type' THEN 1247 END);
CREATE MACRO _regtype(x) AS coalesce(format_type(try_cast(x AS BIGINT), NULL), x::VARCHAR);
CREATE MACRO _regproc(x) AS coalesce((SELECT oid::VARCHAR FROM _functions k WHERE k.name = _plain(x) LIMIT 1), x::VARCHAR);
CREATE MACRO array_remove(a, x) AS list_filter(a, lambda y: y <> x);
CREATE MACRO _regnamespace(x) AS coalesce((SELECT nspname FROM pg_namespace k WHERE k.oid = try_cast(x AS BIGINT)), x::VARCHAR);
CREATE MACRO _regrole(x) AS 'dsms';
CREATE MACRO to_regclass(x) AS (SELECT oid FROM pg_class k WHERE k.relname = _plain(x) LIMIT 1);
CREATE MACRO to_regtype(x) AS (SELECT oid FROM _types k WHERE k.name = x OR _typename(k.oid) = x LIMIT 1);
CREATE MACRO to_regnamespace(x) AS (SELECT oid FROM pg_namespace k WHERE k.nspname = x LIMIT 1);
CREATE MACRO pg_table_is_visible(o) AS true;
CREATE MACRO pg_type_is_visible(o) AS true;
CREATE MACRO pg_function_is_visible(o) AS true;
CREATE MACRO pg_operator_is_visible(o) AS true;
CREATE MACRO pg_statistics_obj_is_visible(o) AS true;
CREATE MACRO pg_get_userbyid(o) AS 'dsms';
CREATE MACRO pg_encoding_to_char(e) AS 'UTF8';
CREATE MACRO pg_get_expr(a, b) AS NULL::VARCHAR, (a, b, c) AS NULL::VARCHAR;
CREATE MACRO pg_get_viewdef(o) AS (SELECT text FROM _objects k WHERE k.oid = o), (o, p) AS (SELECT text FROM _objects k WHERE k.oid = o);
CREATE MACRO pg_get_indexdef(o) AS (SELECT 'PRIMARY KEY ' || name FROM _keys k WHERE k.oid = o),
    (o, n, p) AS (SELECT CASE WHEN n = 0 THEN 'CREATE UNIQUE INDEX ' || k.name || ' ON public.' || (SELECT name FROM _objects x WHERE x.oid = k.relation) || ' USING btree ('
      || (SELECT string_agg(c.name, ', ' ORDER BY list_position(k.columns, c.num)) FROM _columns c WHERE c.oid = k.relation AND list_contains(k.columns, c.num)) || ')'
      ELSE (SELECT c.name FROM _columns c WHERE c.oid = k.relation AND c.num = k.columns[n]) END FROM _keys k WHERE k.oid = o);
CREATE MACRO pg_get_constraintdef(o) AS (SELECT 'PRIMARY KEY (' || string_agg(c.name, ', ' ORDER BY list_position(k.columns, c.num)) || ')'
    FROM _keys k JOIN _columns c ON c.oid = k.relation AND list_contains(k.columns, c.num) WHERE k.oid + 1000000000 = o),
    (o, p) AS (SELECT 'PRIMARY KEY (' || string_agg(c.name, ', ' ORDER BY list_position(k.columns, c.num)) || ')'
    FROM _keys k JOIN _columns c ON c.oid = k.relation AND list_contains(k.columns, c.num) WHERE k.oid + 1000000000 = o);
CREATE MACRO pg_get_function_result(o) AS (SELECT format_type(result, NULL) FROM _functions k WHERE k.oid = o);
CREATE MACRO pg_get_function_arguments(o) AS (SELECT arguments FROM _functions k WHERE k.oid = o);
CREATE MACRO pg_get_function_identity_arguments(o) AS (SELECT arguments FROM _functions k WHERE k.oid = o);
CREATE MACRO pg_get_functiondef(o) AS (SELECT text FROM _functions k WHERE k.oid = o);
CREATE MACRO pg_get_function_sqlbody(o) AS NULL::VARCHAR;
CREATE MACRO pg_get_serial_sequence(a, b) AS NULL::VARCHAR;
CREATE MACRO pg_get_partkeydef(o) AS NULL::VARCHAR;
CREATE MACRO pg_get_statisticsobjdef_columns(o) AS NULL::VARCHAR;
CREATE MACRO pg_relation_is_publishable(o) AS false;
CREATE MACRO pg_relation_size(o) AS 0::BIGINT, (o, f) AS 0::BIGINT;
CREATE MACRO pg_table_size(o) AS 0::BIGINT;
CREATE MACRO pg_total_relation_size(o) AS 0::BIGINT;
CREATE MACRO pg_database_size(o) AS 0::BIGINT;
CREATE MACRO pg_size_pretty(n) AS n::VARCHAR || ' bytes';
CREATE MACRO pg_stat_get_numscans(o) AS 0::BIGINT;
CREATE MACRO pg_is_in_recovery() AS false;
CREATE MACRO pg_is_other_temp_schema(o) AS false;
CREATE MACRO pg_my_temp_schema() AS 0::BIGINT;
CREATE MACRO pg_postmaster_start_time() AS NULL::TIMESTAMP;
CREATE MACRO pg_tablespace_location(o) AS '';
CREATE MACRO pg_advisory_unlock_all() AS NULL::VARCHAR;
CREATE MACRO pg_advisory_unlock(k) AS true;
CREATE MACRO pg_try_advisory_lock(k) AS true;
CREATE MACRO txid_current() AS 1::BIGINT;
CREATE MACRO pg_char_to_encoding(n) AS 6;
CREATE MACRO pg_collation_is_visible(o) AS true;
CREATE MACRO obj_description(o) AS (SELECT comment FROM _objects k WHERE k.oid = o), (o, c) AS (SELECT comment FROM _objects k WHERE k.oid = o);
CREATE MACRO col_description(o, n) AS NULL::VARCHAR;
CREATE MACRO shobj_description(o, c) AS NULL::VARCHAR;
CREATE MACRO has_table_privilege(a, b) AS b ILIKE '%select%', (u, a, b) AS b ILIKE '%select%';
CREATE MACRO has_column_privilege(a, c, b) AS b ILIKE '%select%', (u, a, c, b) AS b ILIKE '%select%';
CREATE MACRO has_any_column_privilege(a, b) AS b ILIKE '%select%', (u, a, b) AS b ILIKE '%select%';
CREATE MACRO has_schema_privilege(a, b) AS b ILIKE '%usage%', (u, a, b) AS b ILIKE '%usage%';
CREATE MACRO has_database_privilege(a, b) AS b ILIKE '%connect%', (u, a, b) AS b ILIKE '%connect%';
CREATE MACRO has_function_privilege(a, b) AS true, (u, a, b) AS true;
CREATE MACRO pg_has_role(a, b) AS true, (u, a, b) AS true;
CREATE MACRO quote_ident(x) AS CASE WHEN regexp_full_match(x, '[a-z_][a-z0-9_$]*') THEN x ELSE '"' || replace(x, '"', '""') || '"' END;
CREATE MACRO quote_literal(x) AS '''' || replace(x, '''', '''''') || '''';
CREATE MACRO array_lower(a, n) AS CASE WHEN len(a) > 0 THEN 1 END;
CREATE MACRO array_upper(a, n) AS nullif(len(a), 0);
CREATE MACRO inet_server_addr() AS NULL::VARCHAR;
CREATE MACRO inet_server_port() AS NULL::INT;
CREATE MACRO inet_client_addr() AS NULL::VARCHAR;
CREATE MACRO information_schema__pg_expandarray(a) AS unnest(list_transform(a, lambda x, i: {'x': x, 'n': i}));
CREATE MACRO string_to_array(a, b) AS TABLE SELECT string_split(a, b) AS s;

CREATE VIEW pg_namespace AS SELECT * FROM (VALUES
  (11::BIGINT, 'pg_catalog', 10::BIGINT, _no_list()), (2200, 'public', 10, NULL),
  (13000, 'information_schema', 10, NULL)) v(oid, nspname, nspowner, nspacl);
CREATE VIEW pg_class AS
  SELECT oid, name AS relname, 2200::BIGINT AS relnamespace, 0::BIGINT AS reltype, 0::BIGINT AS reloftype,
    10::BIGINT AS relowner, CASE kind WHEN 'query' THEN 0 ELSE 2 END::BIGINT AS relam, oid AS relfilenode,
    0::BIGINT AS reltablespace, 0 AS relpages, -1::DOUBLE AS reltuples, 0 AS relallvisible,
    0::BIGINT AS reltoastrelid, kind = 'table' AS relhasindex, false AS relisshared, 'p' AS relpersistence,
    CASE kind WHEN 'query' THEN 'v' ELSE 'r' END AS relkind, columns AS relnatts, 0 AS relchecks,
    false AS relhasrules, false AS relhastriggers, false AS relhassubclass, false AS relrowsecurity,
    false AS relforcerowsecurity, true AS relispopulated, 'd' AS relreplident, false AS relispartition,
    0::BIGINT AS relrewrite, 0::BIGINT AS relfrozenxid, 0::BIGINT AS relminmxid, _no_list() AS relacl,
    _no_list() AS reloptions, NULL::VARCHAR AS relpartbound, false AS relhasoids, 0 AS xmin
  FROM _objects
  UNION ALL
  SELECT oid, name, 2200, 0, 0, 10, 403, oid, 0, 0, 0, 0, 0, false, false, 'p', 'i', len(columns), 0, false,
    false, false, false, false, true, 'n', false, 0, 0, 0, NULL, NULL, NULL, false, 0
  FROM _keys;
CREATE VIEW pg_attribute AS
  SELECT c.oid AS attrelid, c.name AS attname, c.type AS atttypid, -1 AS attstattarget,
    t.size::SMALLINT AS attlen, c.num::SMALLINT AS attnum, (t.item <> 0)::INT AS attndims, -1 AS attcacheoff,
    c.modifier AS atttypmod, t.size > 0 AS attbyval, 'i' AS attalign, 'p' AS attstorage,
    '' AS attcompression, c.required AS attnotnull, false AS atthasdef, false AS atthasmissing,
    '' AS attidentity, '' AS attgenerated, false AS attisdropped, true AS attislocal, 0 AS attinhcount,
    0::BIGINT AS attcollation, _no_list() AS attacl, _no_list() AS attoptions, _no_list() AS attfdwoptions,
    NULL::VARCHAR AS attmissingval
  FROM _columns c JOIN _types t ON t.oid = c.type
  UNION ALL
  SELECT k.oid, a.name, a.type, -1, t.size::SMALLINT, u.num::SMALLINT, 0, -1, a.modifier, t.size > 0, 'i', 'p', '',
    false, false, false, '', '', false, true, 0, 0, NULL, NULL, NULL, NULL
  FROM (SELECT oid, relation, unnest(columns) AS num FROM _keys) u
  JOIN _keys k ON k.oid = u.oid JOIN _columns a ON a.oid = u.relation AND a.num = u.num
  JOIN _types t ON t.oid = a.type;
CREATE VIEW pg_type AS
  SELECT oid, name AS typname, 11::BIGINT AS typnamespace, 10::BIGINT AS typowner, size::SMALLINT AS typlen,
    size > 0 AS typbyval, CASE name WHEN 'record' THEN 'p' WHEN 'void' THEN 'p' WHEN 'unknown' THEN 'p' ELSE 'b' END AS typtype,
    category AS typcategory, false AS typispreferred, true AS typisdefined, ',' AS typdelim,
    0::BIGINT AS typrelid, 0::BIGINT AS typsubscript, item AS typelem, list AS typarray,
    CASE WHEN item <> 0 THEN 'array_in' ELSE name || 'in' END AS typinput, name || 'out' AS typoutput,
    CASE WHEN item <> 0 THEN 'array_recv' ELSE name || 'recv' END AS typreceive, name || 'send' AS typsend,
    '-' AS typmodin, '-' AS typmodout, '-' AS typanalyze, 'i' AS typalign, 'p' AS typstorage, false AS typnotnull,
    0::BIGINT AS typbasetype, -1 AS typtypmod, 0 AS typndims, 0::BIGINT AS typcollation,
    NULL::VARCHAR AS typdefaultbin, NULL::VARCHAR AS typdefault, _no_list() AS typacl
  FROM _types;
CREATE VIEW pg_index AS
  SELECT oid AS indexrelid, relation AS indrelid, len(columns)::SMALLINT AS indnatts,
    len(columns)::SMALLINT AS indnkeyatts, true AS indisunique, false AS indnullsnotdistinct, true AS indisprimary,
    false AS indisexclusion, true AS indimmediate, false AS indisclustered, true AS indisvalid,
    false AS indcheckxmin, true AS indisready, true AS indislive, false AS indisreplident, columns AS indkey,
    list_transform(columns, lambda c: 0::BIGINT) AS indcollation, list_transform(columns, lambda c: 0::BIGINT) AS indclass,
    list_transform(columns, lambda c: 0::BIGINT) AS indoption, NULL::VARCHAR AS indexprs, NULL::VARCHAR AS indpred
  FROM _keys;
CREATE VIEW pg_constraint AS
  SELECT oid + 1000000000 AS oid, name AS conname, 2200::BIGINT AS connamespace, 'p' AS contype,
    false AS condeferrable, false AS condeferred, true AS convalidated, relation AS conrelid,
    0::BIGINT AS contypid, oid AS conindid, 0::BIGINT AS conparentid, 0::BIGINT AS confrelid, ' ' AS confupdtype,
    ' ' AS confdeltype, ' ' AS confmatchtype, true AS conislocal, 0 AS coninhcount, true AS connoinherit,
    columns AS conkey, NULL::BIGINT[] AS confkey, NULL::BIGINT[] AS confdelsetcols, NULL::VARCHAR AS conbin
  FROM _keys;
CREATE VIEW pg_description AS
  SELECT oid AS objoid, 1259::BIGINT AS classoid, 0 AS objsubid, comment AS description
  FROM _objects WHERE comment IS NOT NULL;
CREATE VIEW pg_proc AS
  SELECT oid, name AS proname, 2200::BIGINT AS pronamespace, 10::BIGINT AS proowner, 14::BIGINT AS prolang,
    1::DOUBLE AS procost, 0::DOUBLE AS prorows, 0::BIGINT AS provariadic, 0::BIGINT AS prosupport, kind AS prokind,
    false AS prosecdef, false AS proleakproof, false AS proisstrict, false AS proretset, 'i' AS provolatile,
    's' AS proparallel, len(names)::SMALLINT AS pronargs, 0::SMALLINT AS pronargdefaults, result AS prorettype,
    NULL::BIGINT[] AS proargtypes, NULL::BIGINT[] AS proallargtypes, _no_list() AS proargmodes,
    names AS proargnames, NULL::VARCHAR AS proargdefaults, text AS prosrc, NULL::VARCHAR AS probin,
    _no_list() AS proconfig, _no_list() AS proacl, NULL::VARCHAR AS prosqlbody, arguments AS _arguments
  FROM _functions;
CREATE VIEW pg_database AS SELECT 16383::BIGINT AS oid, 'dsms' AS datname, 10::BIGINT AS datdba, 6 AS encoding,
    'c' AS datlocprovider, false AS datistemplate, true AS datallowconn, -1 AS datconnlimit, 0::BIGINT AS datfrozenxid,
    0::BIGINT AS datminmxid, 1663::BIGINT AS dattablespace, 'C' AS datcollate, 'C' AS datctype, NULL::VARCHAR AS daticulocale,
    NULL::VARCHAR AS daticurules, NULL::VARCHAR AS datlocale, NULL::VARCHAR AS datcollversion, _no_list() AS datacl,
    0::BIGINT AS datlastsysoid;
CREATE VIEW pg_roles AS SELECT 10::BIGINT AS oid, 'dsms' AS rolname, false AS rolsuper, true AS rolinherit,
    false AS rolcreaterole, false AS rolcreatedb, true AS rolcanlogin, false AS rolreplication, -1 AS rolconnlimit,
    NULL::VARCHAR AS rolpassword, NULL::TIMESTAMP AS rolvaliduntil, false AS rolbypassrls, _no_list() AS rolconfig;
CREATE VIEW pg_authid AS SELECT * FROM pg_roles;
CREATE VIEW pg_user AS SELECT rolname AS usename, oid AS usesysid, rolcreatedb AS usecreatedb, rolsuper AS usesuper,
    false AS userepl, false AS usebypassrls, NULL::VARCHAR AS passwd, NULL::TIMESTAMP AS valuntil, _no_list() AS useconfig FROM pg_roles;
CREATE VIEW pg_am AS SELECT * FROM (VALUES (2::BIGINT, 'heap', 'heap_tableam_handler', 't'),
    (403, 'btree', 'bthandler', 'i')) v(oid, amname, amhandler, amtype);
CREATE VIEW pg_language AS SELECT 14::BIGINT AS oid, 'sql' AS lanname, 10::BIGINT AS lanowner, false AS lanispl, true AS lanpltrusted,
    0::BIGINT AS lanplcallfoid, 0::BIGINT AS laninline, 0::BIGINT AS lanvalidator, _no_list() AS lanacl;
CREATE VIEW pg_tablespace AS SELECT 1663::BIGINT AS oid, 'pg_default' AS spcname, 10::BIGINT AS spcowner, _no_list() AS spcacl, _no_list() AS spcoptions;
CREATE VIEW pg_tables AS SELECT 'public' AS schemaname, name AS tablename, 'dsms' AS tableowner, NULL::VARCHAR AS tablespace,
    kind = 'table' AS hasindexes, false AS hasrules, false AS hastriggers, false AS rowsecurity FROM _objects WHERE kind <> 'query';
CREATE VIEW pg_views AS SELECT 'public' AS schemaname, name AS viewname, 'dsms' AS viewowner, text AS definition FROM _objects WHERE kind = 'query';
CREATE VIEW pg_indexes AS SELECT 'public' AS schemaname, o.name AS tablename, k.name AS indexname, NULL::VARCHAR AS tablespace,
    pg_get_indexdef(k.oid) AS indexdef FROM _keys k JOIN _objects o ON o.oid = k.relation;

CREATE VIEW information_schema_schemata AS SELECT 'dsms' AS catalog_name, nspname AS schema_name, 'dsms' AS schema_owner,
    NULL::VARCHAR AS default_character_set_catalog, NULL::VARCHAR AS default_character_set_schema, NULL::VARCHAR AS default_character_set_name,
    NULL::VARCHAR AS sql_path FROM pg_namespace;
CREATE VIEW information_schema_tables AS SELECT 'dsms' AS table_catalog, 'public' AS table_schema, name AS table_name,
    CASE kind WHEN 'query' THEN 'VIEW' ELSE 'BASE TABLE' END AS table_type, NULL::VARCHAR AS self_referencing_column_name,
    NULL::VARCHAR AS reference_generation, NULL::VARCHAR AS user_defined_type_catalog, NULL::VARCHAR AS user_defined_type_schema,
    NULL::VARCHAR AS user_defined_type_name, 'NO' AS is_insertable_into, 'NO' AS is_typed, NULL::VARCHAR AS commit_action FROM _objects;
CREATE VIEW information_schema_views AS SELECT 'dsms' AS table_catalog, 'public' AS table_schema, name AS table_name, text AS view_definition,
    'NONE' AS check_option, 'NO' AS is_updatable, 'NO' AS is_insertable_into FROM _objects WHERE kind = 'query';
CREATE VIEW information_schema_columns AS SELECT 'dsms' AS table_catalog, 'public' AS table_schema, o.name AS table_name,
    c.name AS column_name, c.num AS ordinal_position, NULL::VARCHAR AS column_default,
    CASE WHEN c.required THEN 'NO' ELSE 'YES' END AS is_nullable,
    CASE WHEN t.item <> 0 THEN 'ARRAY' ELSE format_type(c.type, NULL) END AS data_type,
    NULL::INT AS character_maximum_length, NULL::INT AS character_octet_length,
    CASE t.name WHEN 'int8' THEN 64 WHEN 'float8' THEN 53 WHEN 'numeric' THEN (c.modifier - 4) >> 16 END AS numeric_precision,
    CASE t.name WHEN 'numeric' THEN 10 WHEN 'int8' THEN 2 WHEN 'float8' THEN 2 END AS numeric_precision_radix,
    CASE t.name WHEN 'int8' THEN 0 WHEN 'numeric' THEN (c.modifier - 4) & 65535 END AS numeric_scale,
    CASE t.name WHEN 'timestamptz' THEN 6 WHEN 'interval' THEN 6 END AS datetime_precision, NULL::VARCHAR AS interval_type,
    NULL::VARCHAR AS character_set_name, NULL::VARCHAR AS collation_name, NULL::VARCHAR AS domain_name,
    'dsms' AS udt_catalog, 'pg_catalog' AS udt_schema, t.name AS udt_name, c.num::VARCHAR AS dtd_identifier,
    'NO' AS is_self_referencing, 'NO' AS is_identity, NULL::VARCHAR AS identity_generation, 'NEVER' AS is_generated,
    NULL::VARCHAR AS generation_expression, 'NO' AS is_updatable
  FROM _columns c JOIN _objects o ON o.oid = c.oid JOIN _types t ON t.oid = c.type;
CREATE VIEW information_schema_table_constraints AS SELECT 'dsms' AS constraint_catalog, 'public' AS constraint_schema, k.name AS constraint_name,
    'dsms' AS table_catalog, 'public' AS table_schema, o.name AS table_name, 'PRIMARY KEY' AS constraint_type, 'NO' AS is_deferrable,
    'NO' AS initially_deferred, 'YES' AS enforced FROM _keys k JOIN _objects o ON o.oid = k.relation;
CREATE VIEW information_schema_key_column_usage AS SELECT 'dsms' AS constraint_catalog, 'public' AS constraint_schema, k.name AS constraint_name,
    'dsms' AS table_catalog, 'public' AS table_schema, o.name AS table_name, c.name AS column_name,
    list_position(k.columns, c.num) AS ordinal_position, NULL::INT AS position_in_unique_constraint
  FROM _keys k JOIN _objects o ON o.oid = k.relation JOIN _columns c ON c.oid = o.oid AND list_contains(k.columns, c.num);
CREATE VIEW information_schema_constraint_column_usage AS SELECT table_catalog, table_schema, table_name, column_name, constraint_catalog,
    constraint_schema, constraint_name FROM information_schema_key_column_usage;
