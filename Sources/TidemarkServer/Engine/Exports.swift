// The words of the wire are part of the server's interface: scopes, record ids, values, declarations.
@_exported public import TidemarkWire
