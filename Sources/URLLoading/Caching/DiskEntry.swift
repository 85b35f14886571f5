import Foundation

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
