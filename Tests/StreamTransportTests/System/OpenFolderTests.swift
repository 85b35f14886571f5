import ByteKernels
import Foundation
import StreamTransport
import Testing

@Suite("Files below a folder")
struct OpenFolderTests {
    private let path: String

    init() throws {
        self.path = NSTemporaryDirectory() + "sluice-folder-\(UUID().uuidString)"
        let files = FileManager.default
        try files.createDirectory(atPath: self.path + "/top/sub", withIntermediateDirectories: true)
        try Data("inner".utf8).write(to: URL(fileURLWithPath: self.path + "/top/sub/a.txt"))
        try Data("outer".utf8).write(to: URL(fileURLWithPath: self.path + "/outside.txt"))
        for (name, target) in [
            ("inner", "sub/a.txt"), ("folder", "sub"), ("up", ".."), ("out", "../outside.txt"),
            ("absolute", self.path + "/top/sub/a.txt"), ("loop", "loop"), ("round", "sub/../sub/a.txt"),
        ] {
            try files.createSymbolicLink(atPath: self.path + "/top/" + name, withDestinationPath: target)
        }
    }

    private func remove() {
        try? FileManager.default.removeItem(atPath: self.path)
    }

    private func folder(_ resolution: OpenFolder.Resolution = .kernel, _ reserve: DescriptorReserve = .process) throws
        -> OpenFolder
    {
        try OpenFolder(self.path + "/top", resolution: resolution, reserve: reserve)
    }

    private func text(_ file: OpenFile) -> String {
        var bytes = [UInt8](repeating: 0, count: 100)
        let count = bytes.withMutableRawSpan { file.read(into: &$0, at: 0) }
        return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
    }

    @Test(arguments: [OpenFolder.Resolution.kernel, .stepwise])
    func filesAreReadFromAnyOffset(_ resolution: OpenFolder.Resolution) throws {
        defer { self.remove() }
        let file = try self.folder(resolution).open("sub/a.txt")
        #expect(file.kind == .regular && file.size == 5 && file.modified > 0 && file.inode > 0)
        #expect(self.text(file) == "inner")
        var bytes = [UInt8](repeating: 0, count: 10)
        #expect(bytes.withMutableRawSpan { file.read(into: &$0, at: 3) } == 2)
        #expect(bytes.withMutableRawSpan { file.read(into: &$0, at: 5) } == 0)
        #expect(bytes.withMutableRawSpan { file.read(into: &$0, at: -1) } == -22)
    }

    @Test(arguments: [OpenFolder.Resolution.kernel, .stepwise])
    func nothingOutsideIsOpened(_ resolution: OpenFolder.Resolution) throws {
        defer { self.remove() }
        let folder = try self.folder(resolution)
        for name in [
            "..", "../outside.txt", "sub/../../outside.txt", "out", "up", "up/outside.txt", "absolute", "/etc/passwd",
            "loop",
            "a\0", "sub/a.txt/x", "none", "sub//a.txt/..", String(repeating: "a", count: 300),
        ] {
            #expect(throws: SystemError.self, "\(name)") { try folder.open(name) }
        }
    }

    @Test func linksWithinAreFollowedByTheKernelOnly() throws {
        defer { self.remove() }
        let folder = try self.folder()
        for name in ["inner", "folder/a.txt", "round"] { #expect(self.text(try folder.open(name)) == "inner") }
        let stepwise = try self.folder(.stepwise)
        for name in ["inner", "folder/a.txt", "round"] {
            #expect(throws: SystemError.self, "\(name)") { try stepwise.open(name) }
        }
    }

    @Test func entriesAreListedUpToTheRoom() throws {
        defer { self.remove() }
        let (entries, isWhole) = try self.folder().open("").entries()
        #expect(isWhole && entries.count == 8)
        #expect(entries.contains(OpenFile.Entry(name: "sub", isFolder: true)))
        #expect(entries.contains(OpenFile.Entry(name: "loop", isFolder: false)))
        let (some, isAll) = try self.folder().open("").entries(room: 20)
        #expect(!isAll && (1...5).contains(some.count))
        #expect(throws: SystemError.notDirectory) { try self.folder().open("sub/a.txt").entries() }
    }

    @Test func aFolderIsNeeded() throws {
        defer { self.remove() }
        #expect(throws: SystemError.notDirectory) { try OpenFolder(self.path + "/outside.txt") }
        #expect(throws: SystemError.noSuchFile) { try OpenFolder(self.path + "/none") }
    }

    /// Nothing is opened from the reserve.
    @Test func reserveOfDescriptorsIsKept() throws {
        defer { self.remove() }
        let reserve = DescriptorReserve { 10 }
        #expect(throws: SystemError.processDescriptorsExhausted) { try self.folder(.kernel, reserve) }
    }

    @Test func fifosDoNotBlock() throws {
        defer { self.remove() }
        #expect(mkfifo(self.path + "/top/fifo", 0o600) == 0)
        #expect(try self.folder().open("fifo").kind == .other)
        #expect(try self.folder().open("sub").kind == .folder)
    }
}
