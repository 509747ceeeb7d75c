/// Thrown where something is stored under a name that is taken.
struct AlreadyStored: Error, CustomStringConvertible {
    var description: String { "something is stored under this name already" }
}
