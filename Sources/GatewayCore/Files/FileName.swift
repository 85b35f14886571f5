import WireText

/// The name of a file below the directory of a route, as a request asks for it.
package struct FileName: Hashable, Sendable {
    /// Relative, with `/` between segments; empty is the directory itself.
    package let path: String
    /// Whether the request's path ends with a slash, or is the route's own: a directory is meant.
    package let isFolder: Bool

    /// - Parameter rest: the part of the request's path that names the file, percent-encoded; `nil` is the directory.
    /// - Returns: `nil` for names that are never served: hidden ones (but `.well-known`, RFC 8615), and those that contain
    ///   an encoded slash, a backslash, a control character, an empty segment, or are longer than a path may be.
    package init?(encoded rest: String?) {
        guard let rest, !rest.isEmpty else {
            self.path = ""
            self.isFolder = true
            return
        }
        var segments = rest.split(separator: "/", omittingEmptySubsequences: false)
        self.isFolder = segments.last?.isEmpty == true
        if self.isFolder { segments.removeLast() }
        var names: [String] = []
        for (index, segment) in segments.enumerated() {
            guard let name = PercentCoding.decodedText(segment), Self.isServed(name, isFirst: index == 0) else {
                return nil
            }
            names.append(name)
        }
        guard !names.isEmpty else { return nil }
        self.path = names.joined(separator: "/")
        guard self.path.utf8.count <= 4000 else { return nil }
    }

    /// - Parameter isFirst: whether the name lies directly in the route's directory.
    package static func isServed(_ name: String, isFirst: Bool) -> Bool {
        guard (1...255).contains(name.utf8.count),
            name.utf8.first != UInt8(ascii: ".") || isFirst && name.utf8.elementsEqual(".well-known".utf8)
        else { return false }
        return name.utf8.allSatisfy { byte in
            byte >= 0x20 && byte != 0x7F && byte != UInt8(ascii: "/") && byte != UInt8(ascii: "\\")
        }
    }

    /// The path of a file in this directory.
    package func appending(_ name: String) -> String {
        self.path.isEmpty ? name : "\(self.path)/\(name)"
    }

    /// Where a directory is found whose request lacks the slash: a reference relative to the request's own URL, so that it
    /// can lead to no other host.
    /// - Parameter target: the request's. `nil` where its path ends with a slash, or it has none.
    package static func redirect(_ target: String) -> String? {
        let path = target.prefix { $0 != "?" }
        guard !path.hasSuffix("/"), let slash = path.lastIndex(of: "/"), path[..<slash].last != "/" else { return nil }
        return "./\(path[path.index(after: slash)...])/\(target.dropFirst(path.count))"
    }
}
