/// How the text of one option becomes a value.
package struct ValueSyntax<Value> {
    /// What its text looks like.
    package let form: ValueForm
    package let parse: (String) throws(TextFault) -> Value

    package init(
        _ form: ValueForm = .text(example: "", pattern: nil), parse: @escaping (String) throws(TextFault) -> Value
    ) {
        self.form = form
        self.parse = parse
    }

    /// The same, but the word `none` is `nil`.
    package var orNone: ValueSyntax<Value?> {
        ValueSyntax<Value?>(.orNone(self.form)) { text throws(TextFault) in
            if text == "none" { return nil }
            do throws(TextFault) {
                return try self.parse(text)
            } catch {
                throw TextFault(expected: error.expected + ", or none", remedy: error.remedy)
            }
        }
    }
}
