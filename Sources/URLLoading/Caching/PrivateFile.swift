import Foundation

/// Files that only their owner may read.
enum PrivateFile {
    /// Puts `data` in the place of what is at `url`, in one step and with mode 0600; makes the folders that are missing.
    /// - Returns: whether that worked; if not, what was there is still there.
    static func write(_ data: Data, to url: URL) -> Bool {
        let files = FileManager.default
        let folder = url.deletingLastPathComponent()
        try? files.createDirectory(
            at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        let draft = folder.appendingPathComponent("\(self.draftPrefix)\(UUID().uuidString)")
        // Made empty with its mode first, so that the content is at no moment there for others.
        guard files.createFile(atPath: draft.path, contents: nil, attributes: [.posixPermissions: 0o600]) else {
            return false
        }
        do {
            let handle = try FileHandle(forWritingTo: draft)
            try handle.write(contentsOf: data)
            try handle.close()
            guard rename(draft.path, url.path) == 0 else { throw CocoaError(.fileWriteUnknown) }
            return true
        } catch {
            try? files.removeItem(at: draft)
            return false
        }
    }

    /// How the names of files begin that are not finished.
    static let draftPrefix = ".draft-"
}

/// Where the stores of this program have their files, by the rules of the XDG directories.
enum StorageLocation {
    /// `XDG_DATA_HOME`, or else `~/.local/share`, and below it the folder where Foundation on Linux keeps its cookies:
    /// it has the name of the bundle without what follows its first dot.
    static var cookies: URL { self.folder("XDG_DATA_HOME", else: ".local/share", name: self.bundle) }

    /// The same, with a folder that has the name of the program.
    static var credentials: URL { self.folder("XDG_DATA_HOME", else: ".local/share", name: self.program) }

    /// `XDG_CACHE_HOME`, or else `~/.cache`, and below it a folder that has the name of the program.
    static var caches: URL { self.folder("XDG_CACHE_HOME", else: ".cache", name: self.program) }

    private static func folder(_ variable: String, else standard: String, name: String) -> URL {
        let named = ProcessInfo.processInfo.environment[variable]
        // A path that is not absolute is to be ignored, says the rule.
        let root = named.flatMap { $0.hasPrefix("/") ? URL(fileURLWithPath: $0, isDirectory: true) : nil }
        let home = URL(fileURLWithPath: NSHomeDirectory(), isDirectory: true)
        return (root ?? home.appendingPathComponent(standard)).appendingPathComponent(name)
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
