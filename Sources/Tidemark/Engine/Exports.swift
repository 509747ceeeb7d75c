// The words of the wire and the rules that an app may set are part of the client's interface.
@_exported public import TidemarkCore
@_exported public import TidemarkWire
