// The words of the wire that the client's interface speaks, each by its name: the wire has the operator's words too
// (remedies, devices' reports, brakes of deletes, limits), and an app would see `Remedy` beside `SyncStatus.Remedy`.
// Those lie in the wire because what it reads is made of them: a request has a report, an answer a remedy, and `Limits`
// bounds them both. A server's host has all of it from TidemarkServer.

@_exported public import struct TidemarkWire.BlobReference
@_exported public import enum TidemarkWire.ConflictPolicy
@_exported public import enum TidemarkWire.ConflictRule
@_exported public import struct TidemarkWire.EntityDeclaration
@_exported public import struct TidemarkWire.RecordID
@_exported public import enum TidemarkWire.RejectionCode
@_exported public import struct TidemarkWire.Scope
@_exported public import enum TidemarkWire.Value
@_exported public import typealias TidemarkWire.Version
