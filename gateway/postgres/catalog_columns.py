"""The columns of `pg_catalog`'s and `information_schema`'s tables, as PostgreSQL 15 has them, as
far as tools ask for them.

A column is `name:kind`: `i` a number of 64 bits, `s` of 16, `f` DOUBLE, `b` BOOLEAN, `d` a time,
`t` or nothing a text, `I` and `T` lists of numbers and texts.
"""

from __future__ import annotations

import pyarrow as pa

_KINDS: dict[str, pa.DataType] = {
    "i": pa.int64(),
    "s": pa.int16(),
    "f": pa.float64(),
    "b": pa.bool_(),
    "d": pa.timestamp("us", "UTC"),
    "t": pa.string(),
    "I": pa.list_(pa.int64()),
    "T": pa.list_(pa.string()),
}
PG_CATALOG = "pg_catalog"
INFORMATION = "information_schema"
#: prefixes under which the engine has the tables of each schema
PREFIXES = {PG_CATALOG: "p_", INFORMATION: "i_"}

_PG_CATALOG = {
    "pg_am": "oid:i amname amhandler amtype",
    "pg_attrdef": "oid:i adrelid:i adnum:s adbin",
    "pg_attribute": "attrelid:i attname atttypid:i attstattarget:i attlen:s attnum:s attndims:i"
    " attcacheoff:i atttypmod:i attbyval:b attalign attstorage attcompression attnotnull:b"
    " atthasdef:b atthasmissing:b attidentity attgenerated attisdropped:b attislocal:b"
    " attinhcount:i attcollation:i attacl:T attoptions:T attfdwoptions:T attmissingval",
    "pg_auth_members": "roleid:i member:i grantor:i admin_option:b",
    "pg_available_extensions": "name default_version installed_version comment",
    "pg_cast": "oid:i castsource:i casttarget:i castfunc:i castcontext castmethod",
    "pg_class": "oid:i relname relnamespace:i reltype:i reloftype:i relowner:i relam:i"
    " relfilenode:i reltablespace:i relpages:i reltuples:f relallvisible:i reltoastrelid:i"
    " relhasindex:b relisshared:b relpersistence relkind relnatts:s relchecks:s relhasrules:b"
    " relhastriggers:b relhassubclass:b relrowsecurity:b relforcerowsecurity:b relispopulated:b"
    " relreplident relispartition:b relrewrite:i relfrozenxid:i relminmxid:i relacl:T"
    " reloptions:T relpartbound relhasoids:b",
    "pg_collation": "oid:i collname collnamespace:i collowner:i collprovider"
    " collisdeterministic:b collencoding:i collcollate collctype colliculocale collversion",
    "pg_constraint": "oid:i conname connamespace:i contype condeferrable:b condeferred:b"
    " convalidated:b conrelid:i contypid:i conindid:i conparentid:i confrelid:i confupdtype"
    " confdeltype confmatchtype conislocal:b coninhcount:i connoinherit:b conkey:I confkey:I"
    " conpfeqop:I conppeqop:I conffeqop:I conexclop:I conbin consrc",
    "pg_database": "oid:i datname datdba:i encoding:i datlocprovider datistemplate:b"
    " datallowconn:b datconnlimit:i datlastsysoid:i datfrozenxid:i datminmxid:i dattablespace:i"
    " datcollate datctype daticulocale datcollversion datacl:T",
    "pg_depend": "classid:i objid:i objsubid:i refclassid:i refobjid:i refobjsubid:i deptype",
    "pg_description": "objoid:i classoid:i objsubid:i description",
    "pg_enum": "oid:i enumtypid:i enumsortorder:f enumlabel",
    "pg_event_trigger": "oid:i evtname evtevent evtowner:i evtfoid:i evtenabled evttags:T",
    "pg_extension": "oid:i extname extowner:i extnamespace:i extrelocatable:b extversion",
    "pg_foreign_data_wrapper": "oid:i fdwname fdwowner:i fdwhandler:i fdwvalidator:i fdwacl:T"
    " fdwoptions:T",
    "pg_foreign_server": "oid:i srvname srvowner:i srvfdw:i srvtype srvversion srvacl:T"
    " srvoptions:T",
    "pg_foreign_table": "ftrelid:i ftserver:i ftoptions:T",
    "pg_get_keywords": "word catcode barelabel:b catdesc baredesc",
    "pg_index": "indexrelid:i indrelid:i indnatts:s indnkeyatts:s indisunique:b"
    " indnullsnotdistinct:b indisprimary:b indisexclusion:b indimmediate:b indisclustered:b"
    " indisvalid:b indcheckxmin:b indisready:b indislive:b indisreplident:b indkey:I"
    " indcollation:I indclass:I indoption:I indexprs indpred",
    "pg_indexes": "schemaname tablename indexname tablespace indexdef",
    "pg_inherits": "inhrelid:i inhparent:i inhseqno:i inhdetachpending:b",
    "pg_language": "oid:i lanname lanowner:i lanispl:b lanpltrusted:b lanplcallfoid:i laninline:i"
    " lanvalidator:i lanacl:T",
    "pg_locks": "locktype database:i relation:i pid:i mode granted:b",
    "pg_matviews": "schemaname matviewname matviewowner tablespace hasindexes:b ispopulated:b"
    " definition",
    "pg_namespace": "oid:i nspname nspowner:i nspacl:T",
    "pg_opclass": "oid:i opcmethod:i opcname opcnamespace:i opcowner:i opcfamily:i opcintype:i"
    " opcdefault:b opckeytype:i",
    "pg_operator": "oid:i oprname oprnamespace:i oprowner:i oprkind oprcanmerge:b oprcanhash:b"
    " oprleft:i oprright:i oprresult:i oprcom:i oprnegate:i oprcode:i",
    "pg_partitioned_table": "partrelid:i partstrat partnatts:s partdefid:i partattrs:I"
    " partclass:I partcollation:I partexprs",
    "pg_policy": "oid:i polname polrelid:i polcmd polpermissive:b polroles:I polqual polwithcheck",
    "pg_proc": "oid:i proname pronamespace:i proowner:i prolang:i procost:f prorows:f"
    " provariadic:i prosupport prokind prosecdef:b proleakproof:b proisstrict:b proretset:b"
    " provolatile proparallel pronargs:s pronargdefaults:s prorettype:i proargtypes:I"
    " proallargtypes:I proargmodes:T proargnames:T proargdefaults protrftypes:I prosrc probin"
    " prosqlbody proconfig:T proacl:T proisagg:b",
    "pg_publication": "oid:i pubname pubowner:i puballtables:b pubinsert:b pubupdate:b"
    " pubdelete:b pubtruncate:b pubviaroot:b",
    "pg_publication_namespace": "oid:i pnpubid:i pnnspid:i",
    "pg_publication_rel": "oid:i prpubid:i prrelid:i prqual prattrs:I",
    "pg_range": "rngtypid:i rngsubtype:i rngmultitypid:i rngcollation:i rngsubopc:i rngcanonical"
    " rngsubdiff",
    "pg_rewrite": "oid:i rulename ev_class:i ev_type ev_enabled is_instead:b ev_qual ev_action",
    "pg_roles": "rolname rolsuper:b rolinherit:b rolcreaterole:b rolcreatedb:b rolcanlogin:b"
    " rolreplication:b rolconnlimit:i rolpassword rolvaliduntil:d rolbypassrls:b rolconfig:T oid:i",
    "pg_sequence": "seqrelid:i seqtypid:i seqstart:i seqincrement:i seqmax:i seqmin:i seqcache:i"
    " seqcycle:b",
    "pg_sequences": "schemaname sequencename sequenceowner data_type start_value:i min_value:i"
    " max_value:i increment_by:i cycle:b cache_size:i last_value:i",
    "pg_settings": "name setting unit category short_desc extra_desc context vartype source"
    " min_val max_val enumvals:T boot_val reset_val sourcefile sourceline:i pending_restart:b",
    "pg_shdescription": "objoid:i classoid:i description",
    "pg_stat_activity": "datid:i datname pid:i usesysid:i usename application_name client_addr"
    " backend_start:d query_start:d state query",
    "pg_stat_user_tables": "relid:i schemaname relname seq_scan:i n_live_tup:i n_dead_tup:i",
    "pg_statistic_ext": "oid:i stxrelid:i stxname stxnamespace:i stxowner:i stxstattarget:i"
    " stxkeys:I stxkind:T stxexprs",
    "pg_tables": "schemaname tablename tableowner tablespace hasindexes:b hasrules:b"
    " hastriggers:b rowsecurity:b",
    "pg_tablespace": "oid:i spcname spcowner:i spcacl:T spcoptions:T",
    "pg_timezone_names": "name abbrev utc_offset is_dst:b",
    "pg_trigger": "oid:i tgrelid:i tgparentid:i tgname tgfoid:i tgtype:s tgenabled"
    " tgisinternal:b tgconstrrelid:i tgconstrindid:i tgconstraint:i tgdeferrable:b"
    " tginitdeferred:b tgnargs:s tgattr:I tgargs tgqual tgoldtable tgnewtable",
    "pg_type": "oid:i typname typnamespace:i typowner:i typlen:s typbyval:b typtype typcategory"
    " typispreferred:b typisdefined:b typdelim typrelid:i typsubscript typelem:i typarray:i"
    " typinput typoutput typreceive typsend typmodin typmodout typanalyze typalign typstorage"
    " typnotnull:b typbasetype:i typtypmod:i typndims:i typcollation:i typdefaultbin typdefault"
    " typacl:T",
    "pg_user": "usename usesysid:i usecreatedb:b usesuper:b userepl:b usebypassrls:b passwd"
    " valuntil:d useconfig:T",
    "pg_views": "schemaname viewname viewowner definition",
}
_INFORMATION = {
    "character_sets": "character_set_catalog character_set_schema character_set_name",
    "check_constraints": "constraint_catalog constraint_schema constraint_name check_clause",
    "column_privileges": "grantor grantee table_catalog table_schema table_name column_name"
    " privilege_type is_grantable",
    "columns": "table_catalog table_schema table_name column_name ordinal_position:i"
    " column_default is_nullable data_type character_maximum_length:i character_octet_length:i"
    " numeric_precision:i numeric_precision_radix:i numeric_scale:i datetime_precision:i"
    " interval_type character_set_name collation_name domain_name udt_catalog udt_schema udt_name"
    " is_self_referencing is_identity identity_generation is_generated generation_expression"
    " is_updatable",
    "constraint_column_usage": "table_catalog table_schema table_name column_name"
    " constraint_catalog constraint_schema constraint_name",
    "key_column_usage": "constraint_catalog constraint_schema constraint_name table_catalog"
    " table_schema table_name column_name ordinal_position:i position_in_unique_constraint:i",
    "parameters": "specific_catalog specific_schema specific_name ordinal_position:i"
    " parameter_mode parameter_name data_type",
    "referential_constraints": "constraint_catalog constraint_schema constraint_name"
    " unique_constraint_catalog unique_constraint_schema unique_constraint_name match_option"
    " update_rule delete_rule",
    "role_table_grants": "grantor grantee table_catalog table_schema table_name privilege_type"
    " is_grantable with_hierarchy",
    "routines": "specific_catalog specific_schema specific_name routine_catalog routine_schema"
    " routine_name routine_type data_type routine_definition",
    "schemata": "catalog_name schema_name schema_owner default_character_set_catalog"
    " default_character_set_schema default_character_set_name sql_path",
    "sequences": "sequence_catalog sequence_schema sequence_name data_type start_value"
    " minimum_value maximum_value increment cycle_option",
    "table_constraints": "constraint_catalog constraint_schema constraint_name table_catalog"
    " table_schema table_name constraint_type is_deferrable initially_deferred enforced",
    "table_privileges": "grantor grantee table_catalog table_schema table_name privilege_type"
    " is_grantable with_hierarchy",
    "tables": "table_catalog table_schema table_name table_type self_referencing_column_name"
    " reference_generation user_defined_type_catalog user_defined_type_schema"
    " user_defined_type_name is_insertable_into is_typed commit_action",
    "triggers": "trigger_catalog trigger_schema trigger_name event_manipulation"
    " event_object_schema event_object_table action_statement",
    "views": "table_catalog table_schema table_name view_definition check_option is_updatable"
    " is_insertable_into",
}


def _schema(columns: str) -> pa.Schema:
    pairs = (column.partition(":") for column in columns.split())
    return pa.schema([(name, _KINDS[kind or "t"]) for name, _, kind in pairs])


#: name in the engine → columns
TABLES: dict[str, pa.Schema] = {
    PREFIXES[schema] + name: _schema(columns)
    for schema, named in ((PG_CATALOG, _PG_CATALOG), (INFORMATION, _INFORMATION))
    for name, columns in named.items()
}
