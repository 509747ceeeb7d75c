package import TidemarkWire

/// The question for a digest (Protocol.md): of a whole scope, or of one entity's key range in parts.
package struct DigestQuery: Hashable, Sendable {
    package var scope: Scope
    /// The checkpoint as of whose `complete` is compared; absent: the newest version.
    package var at: String?
    package var entity: String?
    /// Records behind this id…
    package var after: String?
    /// …up to and with this one.
    package var through: String?
    /// Records of one part.
    package var every: Int64?
    /// The fields that are summed.
    package var fields: [String] = []

    package init(of scope: Scope) { self.scope = scope }
}
