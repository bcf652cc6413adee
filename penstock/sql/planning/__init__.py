"""What CREATE STREAM means, step by step: names, options, window, select list, target.
`penstock.sql.planner` runs the steps.
"""
