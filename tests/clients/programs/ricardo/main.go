// The functions of github.com/ricardo-ch/go-kafka-connect/v3. Arguments and output are those of steps.py.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/ricardo-ch/go-kafka-connect/v3/lib/connectors"
)

func step(label string, call func() (interface{}, error)) {
	line := map[string]interface{}{"call": label, "returned": nil}
	returned, err := call()
	if err != nil {
		line["raised"] = fmt.Sprintf("%T", err)
		line["text"] = err.Error()
	}
	line["returned"] = returned
	text, _ := json.Marshal(line)
	fmt.Println(string(text))
}

func main() {
	name, topic, file := os.Args[2], os.Args[3], os.Args[4]
	client := connectors.NewClient(os.Args[1])
	one, ghost := connectors.ConnectorRequest{Name: name}, connectors.ConnectorRequest{Name: name + "-ghost"}
	request := func(more ...string) connectors.CreateConnectorRequest {
		config := map[string]interface{}{
			"connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
			"tasks.max":       1,
			"file":            file,
			"topic":           topic,
		}
		for i := 0; i+1 < len(more); i += 2 {
			config[more[i]] = more[i+1]
		}
		return connectors.CreateConnectorRequest{ConnectorRequest: one, Config: config}
	}
	waitFor := func(state string) {
		for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(200 * time.Millisecond) {
			status, err := client.GetConnectorStatus(one)
			if err == nil && status.ConnectorStatus["state"] == state && len(status.TasksStatus) == 1 && status.TasksStatus[0].State == state {
				return
			}
			if time.Now().After(deadline) {
				fmt.Fprintln(os.Stderr, state, "was not reached within 60 s")
				os.Exit(1)
			}
		}
	}

	step("CreateConnector", func() (interface{}, error) { return client.CreateConnector(request(), true) })
	waitFor("RUNNING")
	step("CreateConnector broken", func() (interface{}, error) { return client.CreateConnector(request("tasks.max", "0"), false) })
	step("GetAll", func() (interface{}, error) {
		found, err := client.GetAll()
		for _, each := range found.Connectors {
			if each == name {
				return true, err
			}
		}
		return false, err
	})
	for _, each := range []connectors.ConnectorRequest{one, ghost} {
		of := ""
		if each == ghost {
			of = " of nothing"
		}
		step("GetConnector"+of, func() (interface{}, error) { return client.GetConnector(each) })
		step("GetConnectorConfig"+of, func() (interface{}, error) { return client.GetConnectorConfig(each) })
		step("GetConnectorStatus"+of, func() (interface{}, error) { return client.GetConnectorStatus(each) })
		step("GetAllTasks"+of, func() (interface{}, error) { return client.GetAllTasks(each) })
		step("GetTaskStatus"+of, func() (interface{}, error) {
			return client.GetTaskStatus(connectors.TaskRequest{Connector: each.Name, TaskID: 0})
		})
	}
	step("IsUpToDate", func() (interface{}, error) { return client.IsUpToDate(name, request().Config) })
	step("UpdateConnector", func() (interface{}, error) { return client.UpdateConnector(request("batch.size", "40"), true) })
	waitFor("RUNNING")
	step("IsUpToDate afterwards", func() (interface{}, error) { return client.IsUpToDate(name, request().Config) })
	step("DeployConnector", func() (interface{}, error) { return nil, client.DeployConnector(request()) })
	waitFor("RUNNING")
	step("PauseConnector", func() (interface{}, error) { return client.PauseConnector(one, true) })
	waitFor("PAUSED")
	step("ResumeConnector", func() (interface{}, error) { return client.ResumeConnector(one, true) })
	waitFor("RUNNING")
	step("RestartConnector", func() (interface{}, error) { return client.RestartConnector(one) })
	waitFor("RUNNING")
	step("RestartConnector of nothing", func() (interface{}, error) { return client.RestartConnector(ghost) })
	step("RestartTask", func() (interface{}, error) { return client.RestartTask(connectors.TaskRequest{Connector: name, TaskID: 0}) })
	waitFor("RUNNING")
	step("DeleteConnector", func() (interface{}, error) { return client.DeleteConnector(one, true) })
	step("DeleteConnector again", func() (interface{}, error) { return client.DeleteConnector(one, false) })
}
