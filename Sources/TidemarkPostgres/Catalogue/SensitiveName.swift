/// A column's name suggests that devices should not get or set it. This is a hint for the operator; it decides nothing.
enum SensitiveName {
    /// The column holds a password, a key, or a number that other services ask for.
    case secret
    /// The column decides what somebody may do, or what they own.
    case right

    private static let secrets: Set<String> = [
        "password", "passwd", "pwd", "passphrase", "secret", "token", "hash", "salt", "apikey", "privatekey", "otp",
        "totp", "pin", "ssn", "iban", "cvv", "cvc", "card", "credential", "credentials", "session", "cookie",
        "recovery",
    ]
    private static let rights: Set<String> = [
        "admin", "superuser", "staff", "root", "role", "roles", "permission", "permissions", "privilege", "privileges",
        "grant", "grants", "balance", "credit", "credits", "quota", "verified", "approved", "banned", "owner", "tenant",
    ]

    /// `nil` for any other name.
    init?(_ column: String) {
        let words = Self.words(column)
        // "api_key" and "apiKey" are what "apikey" is.
        let all = words + zip(words, words.dropFirst()).map { $0 + $1 }
        if all.contains(where: Self.secrets.contains) {
            self = .secret
        } else if all.contains(where: Self.rights.contains) {
            self = .right
        } else {
            return nil
        }
    }

    /// The words of a name in small letters: `is_admin`, `isAdmin` and `IS_ADMIN2` have the same ones.
    private static func words(_ name: String) -> [String] {
        var words: [String] = [""]
        var wasSmall = false
        for character in name {
            if !character.isLetter || character.isUppercase && wasSmall { words.append("") }
            wasSmall = character.isLowercase
            if character.isLetter { words[words.count - 1] += character.lowercased() }
        }
        return words.filter { !$0.isEmpty }
    }
}

extension AttachedTable {
    var sensitiveColumns: [String] {
        columns.map(\.name).filter { name in
            switch SensitiveName(name) {
            case .secret: true
            case .right: readOnly?.contains(name) != true && name != scopeColumn?.name
            case nil: false
            }
        }
    }
}
