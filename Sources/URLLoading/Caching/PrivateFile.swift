import Foundation

/// Files with mode 0600.
enum PrivateFile {
    /// Replaces the file atomically; creates missing directories with mode 0700.
    /// - Returns: `false` if it failed; an existing file is then unchanged.
    static func write(_ data: Data, to url: URL) -> Bool {
        let files = FileManager.default
        let folder = url.deletingLastPathComponent()
        try? files.createDirectory(
            at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        let temporary = folder.appendingPathComponent("\(self.temporaryPrefix)\(UUID().uuidString)")
        // The mode is set before the content is written, so that others can never read it.
        guard files.createFile(atPath: temporary.path, contents: nil, attributes: [.posixPermissions: 0o600]) else {
            return false
        }
        do {
            let handle = try FileHandle(forWritingTo: temporary)
            try handle.write(contentsOf: data)
            try handle.close()
            guard rename(temporary.path, url.path) == 0 else { throw CocoaError(.fileWriteUnknown) }
            return true
        } catch {
            try? files.removeItem(at: temporary)
            return false
        }
    }

    /// Name prefix of incomplete files.
    static let temporaryPrefix = ".draft-"
}

/// The directories of this program's stores, by the XDG Base Directory Specification.
package enum StorageLocation {
    /// Below `XDG_DATA_HOME` (`~/.local/share`). Same directory as Foundation on Linux: the bundle name up to its first dot.
    static var cookies: URL { self.folder("XDG_DATA_HOME", else: ".local/share", name: self.bundle) }

    /// Below `XDG_DATA_HOME` (`~/.local/share`), with the program's name.
    static var credentials: URL { self.folder("XDG_DATA_HOME", else: ".local/share", name: self.program) }

    /// Below `XDG_CACHE_HOME` (`~/.cache`), with the program's name.
    static var caches: URL { self.folder("XDG_CACHE_HOME", else: ".cache", name: self.program) }

    private static func folder(_ variable: String, else standard: String, name: String) -> URL {
        self.root(variable, else: standard, in: ProcessInfo.processInfo.environment).appendingPathComponent(name)
    }

    /// The directory that `variable` names, or that of the path `standard` below `HOME`. Without that variable the home
    /// directory is the account's.
    package static func root(_ variable: String, else standard: String, in environment: [String: String]) -> URL {
        // Relative paths must be ignored (XDG Base Directory Specification).
        func absolute(_ name: String) -> URL? {
            environment[name].flatMap { $0.hasPrefix("/") ? URL(fileURLWithPath: $0, isDirectory: true) : nil }
        }
        let home = absolute("HOME") ?? URL(fileURLWithPath: NSHomeDirectory(), isDirectory: true)
        return absolute(variable) ?? home.appendingPathComponent(standard)
    }

    private static var bundle: String {
        let last = Bundle.main.bundlePath.split(separator: "/").last ?? ""
        let name = last.prefix { $0 != "." }
        return name.isEmpty ? self.program : String(name)
    }

    private static var program: String {
        let name = ProcessInfo.processInfo.processName.split(separator: "/").last ?? ""
        return name.isEmpty || name == "." || name == ".." ? "program" : String(name)
    }
}
