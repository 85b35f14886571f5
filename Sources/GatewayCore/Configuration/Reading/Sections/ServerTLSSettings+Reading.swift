extension ServerTLSSettings {
    init(reading section: SectionReader<ServerTLSKey>) {
        self.init(certificates: [])
        if section.has(.certificate) || !section.has(.certificates) {
            self.certificates.append(Self.single(section))
        } else {
            for key in [ServerTLSKey.key, .password, .passwordFile] where section.has(key) {
                section.add(
                    key, expected: "\(key.rawValue) beside the certificate it belongs to", remedy: "move it there")
            }
        }
        if section.has(.certificates) {
            let elements = section.elements(.certificates)
            if elements.isEmpty { section.add(.certificates, expected: "at least one certificate") }
            self.certificates += elements.map {
                CertificateFiles(reading: SectionReader($0.node, at: $0.path, problems: section.problems))
            }
        }
        section.readOptional(.clientCA, into: &self.clientCA, as: .path)
        self.clientAuthentication = section.has(.clientCA) ? .require : .none
        section.read(.clientAuth, into: &self.clientAuthentication, as: .choice)
        section.readList(.clientCRL, into: &self.clientRevocationLists, as: .path)
        self.checkClientAuthentication(section)
        section.readList(.alpn, into: &self.alpn, as: .applicationProtocol)
        section.read(.minVersion, into: &self.minimumVersion, as: .choice)
        section.read(.records, into: &self.records, as: .choice)
        section.readOptional(.keyLog, into: &self.keyLog, as: .path)
    }

    private static func single(_ section: SectionReader<ServerTLSKey>) -> CertificateFiles {
        var files = CertificateFiles(
            certificate: section.required(.certificate, as: .path, unless: .certificates) ?? "")
        section.readOptional(.key, into: &files.key, as: .path)
        files.password = KeyPassword(reading: section, text: .password, file: .passwordFile)
        return files
    }

    private func checkClientAuthentication(_ section: SectionReader<ServerTLSKey>) {
        if self.clientAuthentication == .none, section.has(.clientCA) {
            section.add(
                .clientAuth, expected: "request or require, as there is a client-ca", remedy: "leave out one of the two"
            )
        }
        if self.clientAuthentication != .none, !section.has(.clientCA) {
            section.add(
                .clientCA, expected: "the authorities that client certificates are checked against", found: "nothing",
                remedy: "add client-ca: FILE")
        }
        if section.has(.clientCRL), !section.has(.clientCA) {
            section.add(
                .clientCRL,
                expected: "no revocation lists, as there is no client-ca whose certificates they could name",
                remedy: "add client-ca: FILE, or leave it out")
        }
    }
}
