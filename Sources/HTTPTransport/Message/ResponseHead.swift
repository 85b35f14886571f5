/// What a response says before its content (RFC 9112 §4).
package struct ResponseHead: Sendable, Hashable {
    /// 100 to 999.
    package let status: Int
    /// 1 for HTTP/1.1, 0 for HTTP/1.0.
    package let minorVersion: Int
    /// In the order received; a name may come more than once.
    package let fields: [HeaderField]

    package init(status: Int, minorVersion: Int = 1, fields: [HeaderField] = []) {
        self.status = status
        self.minorVersion = minorVersion
        self.fields = fields
    }

    /// The value of the first field called `name`, which is given in small letters.
    package func first(_ name: String) -> String? {
        self.fields.first { $0.isNamed(name) }?.value
    }

    /// Whether one of the lists in the fields called `name` has this member, both given in small letters.
    package func lists(_ member: String, in name: String) -> Bool {
        self.fields.contains { $0.isNamed(name) && ASCIIText.list($0.value, has: member) }
    }

    /// 100, 102 and so on: another head follows. 101 is final for HTTP.
    package var isInformational: Bool { (100..<200).contains(self.status) && self.status != 101 }
}
