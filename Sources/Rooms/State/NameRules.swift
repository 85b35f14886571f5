import Foundation

extension String {
    /// Whether the text is in Unicode's composed form, NFC (UAX #15). Names of rooms and users are: two that Unicode calls
    /// canonically equivalent, which Swift compares as equal, then are the same bytes. Policies and Redis compare bytes.
    package var isComposed: Bool {
        self.utf8.allSatisfy { $0 < 0x80 } || self.precomposedStringWithCanonicalMapping.utf8.elementsEqual(self.utf8)
    }
}
