"""Custom resource definitions: their own rules, and the resources that they define."""
