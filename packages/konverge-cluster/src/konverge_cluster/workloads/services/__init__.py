"""Services: which pods stand behind them, as EndpointSlices and as Endpoints."""
