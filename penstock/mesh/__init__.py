"""The embedded mesh: a broker, a redis-server and every service as supervised child processes of
one machine.

`layout` says where things lie and on which ports, `services` what runs, `process` how one child
runs, `supervisor` keeps them running, and `running` is the handle that tests, demo and bench hold.
"""
