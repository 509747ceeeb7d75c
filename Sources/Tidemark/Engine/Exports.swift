// The words of the wire that the client's interface speaks: scopes, values, versions, policies.
@_exported public import TidemarkWire
