/// What traffic over a network interface means to its user.
package struct InterfaceClasses: OptionSet, Hashable, Sendable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// A mobile network.
    package static let cellular = InterfaceClasses(rawValue: 1)
    /// Traffic is paid for or limited, as over a mobile network or another person's hotspot.
    package static let expensive = InterfaceClasses(rawValue: 2)
    /// The user asks for little traffic.
    package static let constrained = InterfaceClasses(rawValue: 4)

    /// Of an interface by the kernel's description, its `uevent` file in /sys/class/net: a modem has the type `wwan`.
    package init(uevent text: String) {
        let isModem = text.split(separator: "\n").contains("DEVTYPE=wwan")
        self = isModem ? [.cellular, .expensive] : []
    }
}

/// Classes of interfaces by name, as the environment declares them.
package struct DeclaredInterfaces: Equatable, Sendable {
    /// The environment variable.
    package static let variable = "URLLOADING_INTERFACES"
    /// Most bytes of its value that are read.
    package static let lengthLimit = 4096

    private struct Entry: Equatable {
        let name: Substring
        /// Whether all names that begin so are meant.
        let isPrefix: Bool
        let classes: InterfaceClasses
    }

    private var entries: [Entry] = []

    /// Reads entries such as `wwan0=cellular,expensive usb*=expensive`, separated by spaces, lines or semicolons. A name
    /// that ends in `*` means all that begin so; the first entry that fits an interface counts. Words that are not classes
    /// mean nothing, so that `eth0=none` declares an interface to be ordinary.
    package init(_ text: String) {
        let text = text.utf8.count > Self.lengthLimit ? "" : text
        for part in text.split(whereSeparator: { $0 == ";" || $0.isWhitespace }) {
            let sides = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard sides.count == 2, let name = sides.first, !name.isEmpty else { continue }
            let isPrefix = name.last == "*"
            let classes = sides[1].split(separator: ",").reduce(into: InterfaceClasses()) { classes, word in
                classes.formUnion(Self.classes(named: word))
            }
            self.entries.append(Entry(name: isPrefix ? name.dropLast() : name, isPrefix: isPrefix, classes: classes))
        }
    }

    private static func classes(named word: Substring) -> InterfaceClasses {
        switch word {
        // Also expensive, as everywhere.
        case "cellular": [.cellular, .expensive]
        case "expensive": .expensive
        case "constrained": .constrained
        default: []
        }
    }

    /// - Returns: `nil` for an interface that is not declared.
    package func classes(of name: String) -> InterfaceClasses? {
        self.entries.first { $0.isPrefix ? name.hasPrefix($0.name) : name == $0.name }?.classes
    }
}
