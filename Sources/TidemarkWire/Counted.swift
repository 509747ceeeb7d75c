/// `1 change`, `2 changes`.
package func counted(_ number: some BinaryInteger, _ word: String, _ plural: String? = nil) -> String {
    "\(number) \(number == 1 ? word : plural ?? word + "s")"
}
