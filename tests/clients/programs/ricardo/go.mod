module connectpy.example/drive-ricardo

go 1.21

require github.com/ricardo-ch/go-kafka-connect/v3 v3.0.0-20221117134721-e033f95963cb
