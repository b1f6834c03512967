"""An operator for Tenant: a namespace, a quota and settings for each tenant."""
