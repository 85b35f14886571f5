import Foundation
import HTTPSemantics

/// The part of a cache that is on disk: a folder with one file for each response, and nothing else.
///
/// A file takes its place in one step, so that the folder is whole whenever the process dies. What others do to the
/// folder meanwhile shows as responses that are not there.
struct DiskStore: Sendable {
    /// A draft older than this many seconds was left behind by a process that died.
    private static let draftLifetime: TimeInterval = 3600
    private static let ending = ".response"

    private let folder: URL
    private var order = UsageOrder()
    private var dates: [String: Date] = [:]
    private var isLoaded = false
    private(set) var capacity: Int

    /// Touches no file yet.
    init(folder: URL, capacity: Int) {
        self.folder = folder
        self.capacity = max(0, capacity)
    }

    /// In bytes, the files' heads included.
    mutating func usage() -> Int {
        self.load()
        return self.order.total
    }

    mutating func response(for key: String) -> (response: CachedURLResponse, stored: Date)? {
        guard self.capacity > 0 else { return nil }
        self.load()
        let name = Self.name(for: key)
        guard let file = try? Data(contentsOf: self.url(name)) else {
            self.forget(name)
            return nil
        }
        guard let entry = DiskEntry.read(file) else {
            self.removeFile(name)
            return nil
        }
        guard entry.record.key == key else { return nil }
        self.order.set(name, cost: file.count)
        return (entry.record.response(with: entry.content), entry.record.stored)
    }

    /// Whether there is a file of that name, of this process or another.
    func mayHave(_ key: String) -> Bool {
        self.capacity > 0 && FileManager.default.fileExists(atPath: self.url(Self.name(for: key)).path)
    }

    /// What is larger than the whole capacity is not kept, nor is what it would replace.
    mutating func store(_ response: CachedURLResponse, for key: String, stored: Date, exchange: CachedExchange) {
        guard self.capacity > 0 else { return }
        self.load()
        let name = Self.name(for: key)
        guard response.data.count < self.capacity,
            let file = DiskEntry.written(
                DiskRecord(response, key: key, stored: stored, exchange: exchange), content: response.data),
            file.count <= self.capacity, PrivateFile.write(file, to: self.url(name))
        else {
            self.removeFile(name)
            return
        }
        self.order.set(name, cost: file.count)
        self.dates[name] = stored
        self.shrink()
    }

    mutating func remove(_ key: String) {
        self.load()
        self.removeFile(Self.name(for: key))
    }

    mutating func removeAll() {
        self.load()
        for name in self.order.keys { self.removeFile(name) }
    }

    mutating func remove(since date: Date) {
        self.load()
        for (name, stored) in self.dates where stored >= date { self.removeFile(name) }
    }

    mutating func setCapacity(_ capacity: Int) {
        self.load()
        self.capacity = max(0, capacity)
        self.shrink()
    }

    private mutating func shrink() {
        for name in self.order.evict(to: self.capacity) {
            self.dates[name] = nil
            try? FileManager.default.removeItem(at: self.url(name))
        }
    }

    /// Learns once what an earlier process left.
    private mutating func load() {
        guard !self.isLoaded else { return }
        self.isLoaded = true
        let keys: Set<URLResourceKey> = [.fileSizeKey, .contentModificationDateKey]
        let files = try? FileManager.default.contentsOfDirectory(
            at: self.folder, includingPropertiesForKeys: Array(keys))
        var found: [(name: String, size: Int, date: Date)] = []
        for file in files ?? [] {
            guard let values = try? file.resourceValues(forKeys: keys), let date = values.contentModificationDate else {
                continue
            }
            let name = file.lastPathComponent
            if name.hasSuffix(Self.ending) {
                found.append((name, values.fileSize ?? 0, date))
            } else if name.hasPrefix(PrivateFile.draftPrefix), date.timeIntervalSinceNow < -Self.draftLifetime {
                try? FileManager.default.removeItem(at: file)
            }
        }
        for file in found.sorted(by: { $0.date < $1.date }) {
            self.order.set(file.name, cost: file.size)
            self.dates[file.name] = file.date
        }
        self.shrink()
    }

    private mutating func removeFile(_ name: String) {
        self.forget(name)
        try? FileManager.default.removeItem(at: self.url(name))
    }

    private mutating func forget(_ name: String) {
        self.order.remove(name)
        self.dates[name] = nil
    }

    private func url(_ name: String) -> URL { self.folder.appendingPathComponent(name) }

    private static func name(for key: String) -> String {
        var hasher = DigestHasher(.sha256)
        hasher.update(Array(key.utf8))
        return hasher.finalize() + self.ending
    }
}
