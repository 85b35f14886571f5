/// One place where a file breaks a rule of the house.
struct Finding: Equatable, CustomStringConvertible {
    let path: String
    let line: Int
    let rule: String

    var description: String {
        "\(self.path):\(self.line): \(self.rule)"
    }
}
