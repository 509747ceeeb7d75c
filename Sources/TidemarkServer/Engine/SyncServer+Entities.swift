import TidemarkCore
import TidemarkWire

extension SyncServer {
    /// How an entity's name is spelled in a scope: as the log has it, else as it is declared, else as it came.
    func spelling(of name: String, in state: ScopeState) -> String {
        state.entities.spelling(of: name) ?? declarations[name]?.name ?? name
    }

    /// Whether records of an entity may come into a scope: names that devices think of are not taken without end.
    func hasRoom(for name: String, in state: ScopeState) -> Bool {
        state.entities.all.count < limits.entities || state.entities.spelling(of: name) != nil
            || declarations[name] != nil
    }

    /// An operation under the name that its scope knows its entity by.
    func spelled(_ operation: Operation, in state: ScopeState) -> Operation {
        var operation = operation
        operation.entity = spelling(of: operation.entity, in: state)
        return operation
    }

    /// Entities that are only pushed: what devices sent is for the operator's own programs, not for other devices (B1).
    func withheld(from access: Access) -> WithheldEntities {
        guard !access.isService else { return WithheldEntities() }
        return WithheldEntities(declarations.entities.filter { $0.direction == .push }.map(\.name))
    }
}
