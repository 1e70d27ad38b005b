"""The resource's definition for the API server, generated from the declarations of the model.

Plain data comes out, pure; `tandem_cli.crd` writes it as YAML (`make crd`). Nothing here names a
field of a spec or status but the columns that `kubectl get` prints.
"""
