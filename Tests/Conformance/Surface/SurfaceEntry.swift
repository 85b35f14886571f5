/// One entry of the public surface that the library shares with Foundation, and what shows that it behaves.
struct SurfaceEntry: CustomStringConvertible {
    /// Section and number, as in `P13`.
    let number: String
    /// The name of the entry.
    let name: String
    let standing: Requirement.Status
    /// What of a proven entry is done otherwise, and why.
    var exception: String?

    var description: String { "\(self.number) \(self.name)" }

    /// The tests named, if it is proven.
    var tests: [String] {
        if case .proven(let tests) = self.standing { tests } else { [] }
    }

    static func proven(_ number: String, _ name: String, by tests: String...) -> SurfaceEntry {
        SurfaceEntry(number: number, name: name, standing: .proven(tests))
    }

    func except(_ exception: String) -> SurfaceEntry {
        var entry = self
        entry.exception = exception
        return entry
    }

    static func deviation(_ number: String, _ name: String, because reason: String) -> SurfaceEntry {
        SurfaceEntry(number: number, name: name, standing: .deviation(reason))
    }
}
