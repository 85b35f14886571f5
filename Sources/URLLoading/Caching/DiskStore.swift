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

/// The form of a stored response's file: eight bytes that name the form, the lengths of the record and of the content
/// as eight bytes each with the lowest first, the record as a property list, the content.
///
/// A file that another form, another length or a broken record shows to be none of these holds nothing.
enum DiskEntry {
    private static let mark = Array("SLUICEC1".utf8)
    private static let headerLength = 24

    static func written(_ record: DiskRecord, content: Data) -> Data? {
        let encoder = PropertyListEncoder()
        encoder.outputFormat = .binary
        guard let head = try? encoder.encode(record) else { return nil }
        var file = Data(capacity: self.headerLength + head.count + content.count)
        file.append(contentsOf: self.mark)
        file.append(contentsOf: self.bytes(head.count))
        file.append(contentsOf: self.bytes(content.count))
        file.append(head)
        file.append(content)
        return file
    }

    static func read(_ file: Data) -> (record: DiskRecord, content: Data)? {
        let header = [UInt8](file.prefix(self.headerLength))
        guard header.count == self.headerLength, header.prefix(8).elementsEqual(self.mark),
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

/// What the file of a stored response says before the content.
struct DiskRecord: Codable {
    /// Which response this is: two keys may want the same file.
    let key: String
    let stored: Date
    let url: URL?
    let mimeType: String?
    let expectedContentLength: Int64
    let textEncodingName: String?
    let suggestedFilename: String
    /// These three are of a response over HTTP.
    let status: Int?
    let httpVersion: String?
    let fields: [String: String]?
    /// A property list.
    let userInfo: Data?
    let exchange: CachedExchange?

    init(_ cached: CachedURLResponse, key: String, stored: Date, exchange: CachedExchange) {
        let facts = cached.response.metadata
        let http = cached.response as? HTTPURLResponse
        self.key = key
        self.stored = stored
        self.url = facts.url
        self.mimeType = facts.mimeType
        self.expectedContentLength = facts.expectedContentLength
        self.textEncodingName = facts.textEncodingName
        self.suggestedFilename = facts.suggestedFilename
        self.status = http?.statusCode
        self.httpVersion = http?.httpVersion
        self.fields = http?.fields
        self.userInfo = cached.userInfo.flatMap(Self.list)
        self.exchange = exchange
    }

    func response(with content: Data) -> CachedURLResponse {
        let facts = ResponseMetadata(
            url: self.url, mimeType: self.mimeType, expectedContentLength: self.expectedContentLength,
            textEncodingName: self.textEncodingName,
            suggestedFilename: SuggestedFilename.sanitized(self.suggestedFilename) ?? SuggestedFilename.unknown)
        let response = self.status.map {
            HTTPURLResponse(facts, statusCode: $0, httpVersion: self.httpVersion, fields: self.fields ?? [:])
        }
        let notes = self.userInfo.flatMap {
            try? PropertyListSerialization.propertyList(from: $0, format: nil) as? [String: Any]
        }
        return CachedURLResponse(
            response: response ?? URLResponse(facts), data: content, userInfo: notes, storagePolicy: .allowed,
            exchange: self.exchange)
    }

    /// - Returns: `nil` for what no property list holds.
    private static func list(_ notes: [AnyHashable: Any]) -> Data? {
        var list: [String: Any] = [:]
        for (key, value) in notes {
            guard let key = key as? String else { return nil }
            list[key] = value
        }
        guard PropertyListSerialization.propertyList(list, isValidFor: .binary) else { return nil }
        return try? PropertyListSerialization.data(fromPropertyList: list, format: .binary, options: 0)
    }
}
