"""The kinds of node, by what they are part of.  Import them from `dsms.sql.ast`."""
