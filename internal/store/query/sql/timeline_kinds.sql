SELECT kind AS k, lost, begun, ended FROM found
