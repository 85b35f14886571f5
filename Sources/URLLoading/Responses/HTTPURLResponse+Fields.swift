import Foundation
import HTTPTypes

extension HTTPURLResponse {
    /// - Parameter contentIsEncoded: then its length once decoded is not known.
    package convenience init(
        url: URL, statusCode: Int, httpVersion: String, fields: HTTPFields, contentIsEncoded: Bool
    ) {
        self.init(
            url: url, statusCode: statusCode, httpVersion: httpVersion,
            lines: fields.map { (name: $0.name.rawName, value: $0.value) }, contentIsEncoded: contentIsEncoded)
    }

    /// The fields as the rules of HTTP take them. Repeated ones are one, as they are in `allHeaderFields`.
    package var httpFields: HTTPFields {
        var fields = HTTPFields()
        for (name, value) in self.fields.sorted(by: { $0.key < $1.key }) {
            guard let name = HTTPField.Name(name) else { continue }
            fields.append(HTTPField(name: name, value: value))
        }
        return fields
    }
}
