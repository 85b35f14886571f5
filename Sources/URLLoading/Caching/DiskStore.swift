import Foundation
import HTTPSemantics

/// The disk part of a cache: a directory with one file for each response.
///
/// Files are written atomically, so that the directory stays consistent after a crash. Files removed by others are cache
/// misses.
struct DiskStore: Sendable {
    /// A temporary file older than this, in seconds, was left by a process that crashed.
    private static let temporaryLifetime: TimeInterval = 3600
    private static let suffix = ".response"

    private let folder: URL
    private var order = LRUOrder()
    private var dates: [String: Date] = [:]
    private var isLoaded = false
    private(set) var capacity: Int

    /// Does not access the directory.
    init(folder: URL, capacity: Int) {
        self.folder = folder
        self.capacity = max(0, capacity)
    }

    /// Size of all files, in bytes.
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

    /// Whether a file of that name exists, written by this process or another.
    func mayContain(_ key: String) -> Bool {
        self.capacity > 0 && FileManager.default.fileExists(atPath: self.url(Self.name(for: key)).path)
    }

    /// A response larger than the capacity is not stored, and removes the one it would replace.
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

    /// Reads the directory once.
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
            if name.hasSuffix(Self.suffix) {
                found.append((name, values.fileSize ?? 0, date))
            } else if name.hasPrefix(PrivateFile.temporaryPrefix), date.timeIntervalSinceNow < -Self.temporaryLifetime {
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
        return hasher.finalize() + self.suffix
    }
}

/// The file format of a stored response: a magic number of eight bytes, the lengths of the record and of the content as
/// little-endian 64-bit integers, the record as a property list, the content.
///
/// A file with another magic number, other lengths or an invalid record is ignored.
private enum DiskEntry {
    private static let magic = Array("SLUICEC1".utf8)
    private static let headerLength = 24

    static func written(_ record: DiskRecord, content: Data) -> Data? {
        let encoder = PropertyListEncoder()
        encoder.outputFormat = .binary
        guard let head = try? encoder.encode(record) else { return nil }
        var file = Data(capacity: self.headerLength + head.count + content.count)
        file.append(contentsOf: self.magic)
        file.append(contentsOf: self.bytes(head.count))
        file.append(contentsOf: self.bytes(content.count))
        file.append(head)
        file.append(content)
        return file
    }

    static func read(_ file: Data) -> (record: DiskRecord, content: Data)? {
        let header = [UInt8](file.prefix(self.headerLength))
        guard header.count == self.headerLength, header.prefix(8).elementsEqual(self.magic),
            let headLength = self.length(header[8..<16]), let contentLength = self.length(header[16..<24]),
            headLength <= file.count, contentLength <= file.count,
            self.headerLength + headLength + contentLength == file.count
        else { return nil }
        let start = file.startIndex + self.headerLength
        let head = file[start..<start + headLength]
        guard let record = try? PropertyListDecoder().decode(DiskRecord.self, from: head) else { return nil }
        return (record, Data(file[(start + headLength)...]))
    }

    private static func bytes(_ length: Int) -> [UInt8] {
        (0..<8).map { UInt8(truncatingIfNeeded: length >> ($0 * 8)) }
    }

    private static func length(_ bytes: ArraySlice<UInt8>) -> Int? {
        Int(exactly: bytes.reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
    }
}

/// The metadata in the file of a stored response.
private struct DiskRecord: Codable {
    /// Detects hash collisions of file names.
    let key: String
    let stored: Date
    let url: URL?
    let mimeType: String?
    let expectedContentLength: Int64
    let textEncodingName: String?
    let suggestedFilename: String
    /// This and the next two are `nil` for a response that is not of HTTP.
    let status: Int?
    let httpVersion: String?
    let fields: [String: String]?
    /// A property list.
    let userInfo: Data?
    let exchange: CachedExchange?

    init(_ cached: CachedURLResponse, key: String, stored: Date, exchange: CachedExchange) {
        let metadata = cached.response.metadata
        let http = cached.response as? HTTPURLResponse
        self.key = key
        self.stored = stored
        self.url = metadata.url
        self.mimeType = metadata.mimeType
        self.expectedContentLength = metadata.expectedContentLength
        self.textEncodingName = metadata.textEncodingName
        self.suggestedFilename = metadata.suggestedFilename
        self.status = http?.statusCode
        self.httpVersion = http?.httpVersion
        self.fields = http?.fields
        self.userInfo = cached.encodedUserInfo
        self.exchange = exchange
    }

    func response(with content: Data) -> CachedURLResponse {
        let metadata = ResponseMetadata(
            url: self.url, mimeType: self.mimeType, expectedContentLength: self.expectedContentLength,
            textEncodingName: self.textEncodingName,
            suggestedFilename: SuggestedFilename.sanitized(self.suggestedFilename) ?? SuggestedFilename.unknown)
        let response = self.status.map {
            HTTPURLResponse(metadata, statusCode: $0, httpVersion: self.httpVersion, fields: self.fields ?? [:])
        }
        return CachedURLResponse(
            response: response ?? URLResponse(metadata), data: content,
            userInfo: self.userInfo.flatMap(CachedURLResponse.userInfo), storagePolicy: .allowed,
            exchange: self.exchange)
    }
}
