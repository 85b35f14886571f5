/// How a list of named things became another. All in the order of the list they are in, `changed` in the new one's.
package struct ListDifference: Sendable, Equatable {
    package var added: [String] = []
    package var removed: [String] = []
    package var changed: [String] = []
    package var unchanged: [String] = []

    package var isEmpty: Bool { self.added.isEmpty && self.removed.isEmpty && self.changed.isEmpty }

    init<Element: Equatable>(from old: [Element], to new: [Element], named name: (Element) -> String) {
        let before = Dictionary(old.map { (name($0), $0) }, uniquingKeysWith: { first, _ in first })
        let after = Set(new.map(name))
        for element in new {
            switch before[name(element)] {
            case nil: self.added.append(name(element))
            case element: self.unchanged.append(name(element))
            default: self.changed.append(name(element))
            }
        }
        self.removed = old.map(name).filter { !after.contains($0) }
    }
}
