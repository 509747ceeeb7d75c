// Errors that end the transaction of a page, so that it is taken in another way.

/// Thrown where an answer writes to the app's tables after all.
struct RowsToWrite: Error {}

/// A difference on a page does not fit what is here: the page is not taken.
struct DifferenceMismatch: Error {}
