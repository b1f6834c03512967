"""The program that runs the containers of one pod, as a process of its own.

It imports only the standard library and starts in some milliseconds. `program` is the loop of a pod, `shim` the process
beside each container, `kernel` the system calls that Python lacks, `mounts` the root directory of a container,
`descendants` the processes below a process, `log_files` the log of a container.
"""
