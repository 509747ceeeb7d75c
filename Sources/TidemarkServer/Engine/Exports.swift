// The words of the wire are part of the server's interface: scopes, record ids, values, declarations, limits, remedies.
@_exported public import TidemarkWire
