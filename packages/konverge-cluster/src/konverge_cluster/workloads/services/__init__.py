"""Services: their endpoints, as EndpointSlices and as Endpoints."""
