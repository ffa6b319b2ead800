"""The rewrite rules: one table, one file per rule, named alike in EXPLAIN.

Each looks at one node.  The driver (`dsms.plan.optimize`) walks the plan and checks after every
step that the columns and ids are the same and the update pattern is no worse.

Tables (Golab 2006, §3.5.3): no rule puts a strict operator below a ⋈R or ⋈NRR, and plans in which a
⋈R has a strict input count as dearer than any in which it has not, so negation, outer joins and
join orders make room for it.  A ⋈NRR stays where the query has it: it reads its table as of the
birth of the row that comes, and below a join or a negation rows are born at other instants.  Over a
strict input it keeps its results (`probe-stored`) to take them back.
"""

from dsms.plan.rules.base import Context, Rule
from dsms.plan.rules.compare_extremes import compare_extremes
from dsms.plan.rules.distinct_below_semijoin import distinct_below_semijoin
from dsms.plan.rules.distinct_push_down import distinct_push_down
from dsms.plan.rules.drop_distinct import drop_distinct
from dsms.plan.rules.drop_projection import drop_projection
from dsms.plan.rules.exists_ignores_distinct import exists_ignores_distinct
from dsms.plan.rules.merge_projections import merge_projections
from dsms.plan.rules.merge_selections import merge_selections
from dsms.plan.rules.narrow_asof import narrow_asof
from dsms.plan.rules.narrow_exists import narrow_exists
from dsms.plan.rules.narrow_group import narrow_group
from dsms.plan.rules.narrow_join import narrow_join
from dsms.plan.rules.narrow_match import narrow_match
from dsms.plan.rules.narrow_multi_join import narrow_multi_join
from dsms.plan.rules.narrow_nrr import narrow_nrr
from dsms.plan.rules.narrow_over import narrow_over
from dsms.plan.rules.narrow_select import narrow_select
from dsms.plan.rules.narrow_semijoin import narrow_semijoin
from dsms.plan.rules.narrow_union import narrow_union
from dsms.plan.rules.narrow_unnest import narrow_unnest
from dsms.plan.rules.narrow_window import narrow_window
from dsms.plan.rules.negation_pull_up import negation_pull_up
from dsms.plan.rules.negation_push_down import negation_push_down
from dsms.plan.rules.outer_join_pull_up import outer_join_pull_up
from dsms.plan.rules.outer_to_inner import outer_to_inner
from dsms.plan.rules.pipeline_joins import pipeline_joins
from dsms.plan.rules.reorder_joins import reorder_joins
from dsms.plan.rules.residual_to_inputs import residual_to_inputs
from dsms.plan.rules.residual_to_keys import residual_to_keys
from dsms.plan.rules.select_below_window import select_below_window
from dsms.plan.rules.select_through_append import select_through_append
from dsms.plan.rules.select_through_asof import select_through_asof
from dsms.plan.rules.select_through_distinct import select_through_distinct
from dsms.plan.rules.select_through_group import select_through_group
from dsms.plan.rules.select_through_join import select_through_join
from dsms.plan.rules.select_through_nrr import select_through_nrr
from dsms.plan.rules.select_through_over import select_through_over
from dsms.plan.rules.select_through_project import select_through_project
from dsms.plan.rules.select_through_semijoin import select_through_semijoin
from dsms.plan.rules.select_through_set_op import select_through_set_op
from dsms.plan.rules.select_through_union import select_through_union
from dsms.plan.rules.select_through_unnest import select_through_unnest
from dsms.plan.rules.simplify_predicate import simplify_predicate
from dsms.plan.rules.transitive_constants import transitive_constants

__all__ = ["RULES", "Context", "Rule"]

RULES: tuple[Rule, ...] = (
    Rule(simplify_predicate),
    Rule(merge_selections),
    Rule(outer_to_inner),
    Rule(select_through_project),
    Rule(select_through_join),
    Rule(select_through_nrr),
    Rule(select_through_asof),
    Rule(select_through_unnest),
    Rule(select_through_over),
    Rule(select_through_semijoin),
    Rule(select_through_union),
    Rule(select_through_group),
    Rule(select_through_distinct),
    Rule(select_through_set_op),
    Rule(select_through_append),
    Rule(select_below_window),
    Rule(residual_to_inputs),
    Rule(residual_to_keys),
    Rule(transitive_constants),
    Rule(drop_distinct),
    Rule(exists_ignores_distinct),
    Rule(compare_extremes),
    Rule(merge_projections, "both"),
    Rule(drop_projection, "both"),
    Rule(reorder_joins, "cost"),
    Rule(pipeline_joins, "cost"),
    Rule(negation_pull_up, "cost"),
    Rule(negation_push_down, "cost"),
    Rule(outer_join_pull_up, "cost"),
    Rule(distinct_push_down, "cost"),
    Rule(distinct_below_semijoin, "cost"),
    Rule(narrow_join, "last"),
    Rule(narrow_multi_join, "last"),
    Rule(narrow_nrr, "last"),
    Rule(narrow_asof, "last"),
    Rule(narrow_match, "last"),
    Rule(narrow_unnest, "last"),
    Rule(narrow_over, "last"),
    Rule(narrow_select, "last"),
    Rule(narrow_window, "last"),
    Rule(narrow_semijoin, "last"),
    Rule(narrow_exists, "last"),
    Rule(narrow_union, "last"),
    Rule(narrow_group, "last"),
)
