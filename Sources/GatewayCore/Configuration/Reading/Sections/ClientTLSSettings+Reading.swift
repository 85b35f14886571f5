extension ClientTLSSettings {
    init(reading section: SectionReader<ClientTLSKey>) {
        self.init()
        section.readOptional(.ca, into: &self.authorities, as: .path)
        section.readList(.crl, into: &self.revocationLists, as: .path)
        section.readOptional(.serverName, into: &self.serverName, as: .host)
        var isInsecure = false
        section.read(.insecure, into: &isInsecure, as: .boolean)
        self.verifies = !isInsecure
        section.readList(.pins, into: &self.pins, as: .publicKeyPin)
        section.readList(.alpn, into: &self.alpn, as: .applicationProtocol)
        section.read(.minVersion, into: &self.minimumVersion, as: .choice)
        section.readOptional(.keyLog, into: &self.keyLog, as: .path)
        self.readIdentity(section)
        let rivals = [(ClientTLSKey.ca, "authorities to verify with"), (.crl, "revocation lists to look in")]
        if isInsecure, let (_, sense) = rivals.first(where: { section.has($0.0) }) {
            section.add(
                .insecure, expected: "either \(sense) or insecure: true", remedy: "leave out one of the two")
        }
    }

    private mutating func readIdentity(_ section: SectionReader<ClientTLSKey>) {
        let password = KeyPassword(reading: section, text: .password, file: .passwordFile)
        var key: String?
        section.readOptional(.key, into: &key, as: .path)
        if section.has(.certificate) {
            let certificate = section.value(.certificate, as: ValueSyntax<String>.path) ?? ""
            self.identity = CertificateFiles(certificate: certificate, key: key, password: password)
        } else if let alone = [ClientTLSKey.key, .password, .passwordFile].first(where: section.has) {
            section.add(
                .certificate, expected: "the certificate that \(alone.rawValue) belongs to", found: "nothing",
                remedy: "add certificate: FILE")
        }
    }
}
