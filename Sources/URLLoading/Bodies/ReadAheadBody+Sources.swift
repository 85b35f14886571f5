import Foundation

extension ReadAheadBody {
    /// The body that a stream gives. It has no length, and cannot begin again.
    package convenience init(_ stream: sending InputStream) {
        self.init(StreamReader(stream))
    }

    /// The content of the file at `url`, as long as it is now.
    /// - Returns: the body and its length in bytes.
    package static func file(_ url: URL) throws(FileBodyFailure) -> (body: ReadAheadBody, length: Int64) {
        let reader = try FileReader(url)
        return (ReadAheadBody(reader), reader.length)
    }
}
