// Scopes, ids, values and transports are part of the interface.
@_exported public import Tidemark
