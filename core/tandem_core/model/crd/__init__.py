"""Generates the resource's definition for the API server from the declarations of the model.

Pure: it returns plain data, which `tandem_cli.crd` writes as YAML (`make crd`). It names no field
of a spec or status except the columns that `kubectl get` prints.
"""
