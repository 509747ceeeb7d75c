import Foundation
import GRDB

extension String {
    /// Itself as an argument, with all that is in it: GRDB ends a text at its first NUL, and two names would be one. A
    /// text that holds a NUL is kept as a blob, which no text equals and which reads as the same string.
    var whole: DatabaseValue { utf8.contains(0) ? Data(utf8).databaseValue : databaseValue }
}
