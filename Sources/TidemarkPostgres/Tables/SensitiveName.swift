/// What a column's name lets suspect. It is a hint for the operator, and decides nothing.
enum SensitiveName {
    /// Whoever has it can do more than read: a password, a key, a number that is asked for elsewhere.
    case secret
    /// Whoever sets it may do more, or owns more.
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

    /// `nil` for a name that lets suspect nothing.
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

    /// The words of `is_admin`, `isAdmin` and `ISADMIN1` alike, in small letters.
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
