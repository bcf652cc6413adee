"""Steps of planning a CREATE STREAM: names, options, window, select list, target.
`penstock.sql.planner` runs the steps.
"""
