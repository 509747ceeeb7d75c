/// Sums of moments and times that a peer, a file or an app's settings may have named: a trap would end the process, so
/// the outermost number takes the place of one that does not fit.
extension Int64 {
    package func saturatingAdding(_ other: Int64) -> Int64 {
        let (sum, isTooFar) = addingReportingOverflow(other)
        return isTooFar ? (other > 0 ? .max : .min) : sum
    }

    package func saturatingSubtracting(_ other: Int64) -> Int64 {
        let (difference, isTooFar) = subtractingReportingOverflow(other)
        return isTooFar ? (other < 0 ? .max : .min) : difference
    }
}
