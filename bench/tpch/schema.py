"""The eight tables of TPC-H: columns, keys, and which indexes there are.

After the public specification (revision 3, clause 1.4).  Money, quantities and
rates are decimal there and numeric(15,2) here; what the specification calls
fixed and variable text is text, as IMPORT FOREIGN SCHEMA would make it; the
key of orders, which is the one that outgrows 32 bits, is bigint.

Documents have these fields under these names and an _id of their own, as
collections have that were filled from a relational database.  The natural keys
have unique indexes and the foreign keys ordinary ones, here as in PostgreSQL.
"""
MONEY = "numeric(15,2)"


class Table:
    def __init__(self, columns, unique, *indexes):
        self.columns = [tuple(line.split(None, 1)) for line in columns.strip().splitlines()]
        self.unique = unique
        self.indexes = indexes

    def names(self):
        return [name for name, _ in self.columns]

    def types(self):
        return [sql_type for _, sql_type in self.columns]

    def money(self):
        return [name for name, sql_type in self.columns if sql_type == MONEY]

    def is_indexed(self, column):
        """Does an index begin with this column?"""
        return any(index[0] == column for index in (self.unique, *self.indexes))


TABLES = {
    "region": Table("""
        r_regionkey integer
        r_name text
        r_comment text
        """, ("r_regionkey",)),
    "nation": Table("""
        n_nationkey integer
        n_name text
        n_regionkey integer
        n_comment text
        """, ("n_nationkey",), ("n_regionkey",)),
    "supplier": Table("""
        s_suppkey integer
        s_name text
        s_address text
        s_nationkey integer
        s_phone text
        s_acctbal numeric(15,2)
        s_comment text
        """, ("s_suppkey",), ("s_nationkey",)),
    "customer": Table("""
        c_custkey integer
        c_name text
        c_address text
        c_nationkey integer
        c_phone text
        c_acctbal numeric(15,2)
        c_mktsegment text
        c_comment text
        """, ("c_custkey",), ("c_nationkey",)),
    "part": Table("""
        p_partkey integer
        p_name text
        p_mfgr text
        p_brand text
        p_type text
        p_size integer
        p_container text
        p_retailprice numeric(15,2)
        p_comment text
        """, ("p_partkey",)),
    "partsupp": Table("""
        ps_partkey integer
        ps_suppkey integer
        ps_availqty integer
        ps_supplycost numeric(15,2)
        ps_comment text
        """, ("ps_partkey", "ps_suppkey"), ("ps_suppkey",)),
    "orders": Table("""
        o_orderkey bigint
        o_custkey integer
        o_orderstatus text
        o_totalprice numeric(15,2)
        o_orderdate date
        o_orderpriority text
        o_clerk text
        o_shippriority integer
        o_comment text
        """, ("o_orderkey",), ("o_custkey",)),
    "lineitem": Table("""
        l_orderkey bigint
        l_partkey integer
        l_suppkey integer
        l_linenumber integer
        l_quantity numeric(15,2)
        l_extendedprice numeric(15,2)
        l_discount numeric(15,2)
        l_tax numeric(15,2)
        l_returnflag text
        l_linestatus text
        l_shipdate date
        l_commitdate date
        l_receiptdate date
        l_shipinstruct text
        l_shipmode text
        l_comment text
        """, ("l_orderkey", "l_linenumber"), ("l_partkey", "l_suppkey"), ("l_suppkey",)),
}
